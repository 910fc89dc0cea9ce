"""Open the catalog's database, bring it to head, and hand out transactions."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from app.errors import StoreBusy
from app.stores.driver import failure_name, sqlite_driver, storage_failure
from app.stores.migration import migrate, needs_migration
from app.stores.remembered import CommitWatcher, Moment
from app.stores.snapshot import copy_database
from app.turn import Turn

BUSY_SECONDS = 15.0


class Database:
    """Hold the catalog's connections; thread-safe, and safe for several processes on one file.

    A commit survives the death of the process. The last ones may be lost when the machine loses power, without
    damage to the rest, since waiting for the disk at each commit (3 ms) would queue the writers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = _engine(path)
        self._watcher = CommitWatcher(self._engine)
        self._writing = self._engine.execution_options(immediate=True)
        # SQLite lets waiting writers poll, up to 100 ms apart; within a process the next one is woken at once.
        self._turn = Turn()

    def migrate(self) -> None:
        """Create the file if need be (mode 0600) and bring it to head, one process at a time."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path.with_name(self._path.name + ".lock"), mode=0o600, poll_interval=0.01):
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            with self.read() as connection:
                if not needs_migration(connection, "catalog"):
                    return
            with self.write() as connection:
                migrate(connection, "catalog")

    def copy(self, target: Path) -> None:
        """Write the database as it is at one moment to a new file, while others write."""
        with self.read() as connection:
            # Only the first read fixes the moment.
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            copy_database(connection.connection.driver_connection, target)

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._watcher.close()
        self._engine.dispose()

    def moment(self) -> Moment:
        """Return what every commit changes, by whichever process; nothing else is read."""
        with _told_plainly():
            return self._watcher.moment()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one moment of the database."""
        with _told_plainly(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give the one connection that writes; commit at the end, roll back on any error.

        Raises `StoreBusy` when another writer does not end within `BUSY_SECONDS`, `StorageFull` for a full disk.
        """
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise _busy()
        try:
            with _told_plainly(), self._writing.begin() as connection:
                yield connection
        finally:
            self._turn.release()

    def compact(self) -> None:
        """Write the file anew without what was deleted, and empty the log, which still holds it.

        Raises `StoreBusy` where other processes read or write for too long.
        """
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise _busy()
        try:
            # Neither may run in a transaction.
            bare = self._engine.execution_options(bare=True)
            with _told_plainly(), bare.connect() as connection:
                connection.exec_driver_sql("VACUUM")
                is_held, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        finally:
            self._turn.release()
        if is_held:
            raise _busy()


def _engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        module=sqlite_driver(),
        # Transactions begin by our own statement; the driver's implicit ones would not be IMMEDIATE.
        connect_args={"isolation_level": None, "check_same_thread": False, "timeout": BUSY_SECONDS},
        pool_size=8,
        max_overflow=-1,
    )

    @event.listens_for(engine, "connect")
    def configure(driver_connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
            driver_connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if not options.get("bare", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("immediate", False) else "BEGIN")

    return engine


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Turn the driver's words for a busy, full, damaged or unreachable database into ours."""
    try:
        yield
    except (DBAPIError, sqlite_driver().Error) as error:
        if failure_name(error).startswith("SQLITE_BUSY"):
            raise _busy() from error
        failure = storage_failure(error, "catalog.db", remedy="restore it from a backup")
        if failure is not None:
            raise failure from error
        raise


def _busy() -> StoreBusy:
    return StoreBusy(f"the catalog was being written for {BUSY_SECONDS:g} s", hint="try again", retry_after=1)
