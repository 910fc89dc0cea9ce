"""The SQLite driver of every database of ours, and what its failures mean."""

from types import ModuleType

from sqlalchemy.exc import DBAPIError

from app.errors import FootnoteError, Misconfigured, StorageFull, StoreDamaged, Unavailable

OLDEST_SQLITE = (3, 45)

_NO_TEXT = "Could not decode to UTF-8"


def sqlite_driver() -> ModuleType:
    """Return `pysqlite3`, or this Python's own `sqlite3` where that can load extensions and is new enough."""
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        import sqlite3 as dbapi2

        if not hasattr(dbapi2.Connection, "enable_load_extension") or dbapi2.sqlite_version_info < OLDEST_SQLITE:
            raise Misconfigured(
                f"this Python's SQLite ({dbapi2.sqlite_version}) is older than 3.45 or cannot load extensions",
                hint="pip install pysqlite3",
            ) from None
    return dbapi2  # type: ignore[no-any-return]


def failure_name(error: Exception) -> str:
    """Return SQLite's name of a failure, such as `SQLITE_BUSY_SNAPSHOT`; empty for one that is none of SQLite's."""
    return str(getattr(_cause(error), "sqlite_errorname", ""))


def storage_failure(error: Exception, database: str, *, remedy: str) -> FootnoteError | None:
    """Return the error to raise for a disk or a file that fails, `None` for any other failure.

    `database` is what it is called, `remedy` what to do where it is damaged.
    """
    name = failure_name(error)
    if name == "SQLITE_FULL":
        return StorageFull(f"the disk that holds {database} is full", hint="free some space")
    # The driver gives no name to its own failure: to read bytes of a text that are none.
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or str(_cause(error)).startswith(_NO_TEXT):
        return StoreDamaged(f"{database} is not sound", hint=remedy)
    if name.startswith(("SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return Unavailable(
            f"{database} cannot be read or written now",
            code="store_unavailable",
            hint="look at the data folder's disk and permissions",
        )
    return None


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
