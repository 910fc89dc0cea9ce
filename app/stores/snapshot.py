"""Copy a database of ours while it is written, and check one that comes from elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from app.errors import DamagedArchive, StorageFull, UnsupportedArchive, UnusableArchive
from app.stores.driver import sqlite_driver
from app.stores.migration import known_revisions

PAGES_IN_A_STEP = 512
"""Pages copied between two moments at which other threads run."""

WITHOUT_WORK = (
    "DELETE FROM staged_vectors",
    "DELETE FROM staged_contexts",
    "DELETE FROM next_vectors",
    "DELETE FROM next_space",
    "DELETE FROM documents WHERE version = 0 AND state IN ('pending', 'processing')",
)
"""Statements that take out of a collection's copy what only unfinished jobs need."""

_FULL = "database or disk is full"

SchemaObject = tuple[str, str, str | None]
"""Type, name and SQL of a table or an index."""


def copy_database(source: Any, target: Path, clean: Sequence[str] = ()) -> None:
    """Copy what a driver's connection sees to a new file of mode 0600, in steps; raises `StorageFull`.

    The connection must be in a read transaction: all steps then see one moment, and no writer waits (WAL). The
    statements of `clean` run on a draft, whose free pages are left out, so that nothing deleted comes along.
    """
    draft = target.with_name(f"{target.name}.draft")
    try:
        with _told_when_full(target):
            for file in (draft, target):
                file.touch(mode=0o600, exist_ok=False)
            with closing(_connected(draft)) as copy:
                source.backup(copy, pages=PAGES_IN_A_STEP)
                # Whoever asked for a copy that was not finished throws it away, so it needs no journal.
                for pragma in ("journal_mode = DELETE", "journal_mode = OFF", "synchronous = OFF", "foreign_keys = ON"):
                    copy.execute(f"PRAGMA {pragma}")
                for statement in clean:
                    copy.execute(statement)
                # Into a file of its own: `VACUUM` alone needs as much room in the system's temporary folder.
                copy.execute("VACUUM INTO ?", (str(target),))
            with closing(_connected(target)) as copy:
                copy.execute("PRAGMA journal_mode = WAL")
    finally:
        draft.unlink(missing_ok=True)


def check_database(file: Path, stream: Literal["catalog", "collection"]) -> None:
    """Raise the `UnusableArchive` that says why a file is no sound database of the stream.

    Nothing of the file's own is run: a view or a trigger refuses it.
    """
    with _told_as_damage(file.name), closing(_opened(file)) as connection:
        foreign = [name for kind, name, sql in _objects(connection) if not _is_ours(kind, sql)]
        if foreign:
            raise UnusableArchive(f"{file.name} holds {foreign[0][:100]!r}, which no release has made")
        findings = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        if findings != ["ok"]:
            raise DamagedArchive(f"{file.name} is not sound: {findings[0][:200]}")
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise DamagedArchive(f"{file.name} is not sound: a row belongs to one that is not there")
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    revision = "" if found is None else str(found[0])
    if revision not in known_revisions(stream):
        raise UnsupportedArchive(
            f"{file.name} is at revision {revision[:40]!r}, which this release does not know",
            hint="use the release that wrote it, or a later one",
        )


def schema_of(file: Path) -> set[SchemaObject]:
    """Return every table and index of a database but SQLite's own, with the statement that made it."""
    with closing(_opened(file)) as connection:
        return {described for described in _objects(connection) if not described[1].startswith("sqlite_")}


def _connected(file: Path) -> Any:
    return sqlite_driver().connect(str(file), isolation_level=None)


@contextmanager
def _told_when_full(target: Path) -> Iterator[None]:
    try:
        yield
    except sqlite_driver().DatabaseError as error:
        # Told by its words, since `backup` gives its failures no name.
        if str(error) == _FULL:
            raise StorageFull(f"the disk has no room for {target.name}", hint="free some space") from error
        raise


def _opened(file: Path) -> Any:
    connection = sqlite_driver().connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _objects(connection: Any) -> list[SchemaObject]:
    return [(kind, name, sql) for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master")]


def _is_ours(kind: str, sql: str | None) -> bool:
    return kind == "index" or (kind == "table" and "VIRTUAL" not in (sql or "").upper().split()[:2])


@contextmanager
def _told_as_damage(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite_driver().DatabaseError as error:
        raise DamagedArchive(f"{name} is no database that can be read") from error
