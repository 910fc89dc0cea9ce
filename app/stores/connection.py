"""Open one SQLite file for many readers and one writer."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlite_vec
from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.errors import NotFound, StoreBusy, StoreDamaged, Unavailable
from app.stores.driver import failure_name, sqlite_driver, storage_failure
from app.stores.migration import migrate, needs_migration
from app.stores.remembered import CommitWatcher, Moment
from app.stores.snapshot import copy_database

_logger = logging.getLogger(__name__)

_NAME = "the collection's database"
_REMEDY = "restore the collection's folder from a backup, or delete the collection and send its documents again"
_LARGEST_LOG_BYTES = 64 * 2**20
# Both are kept in the file. Two vectors of 384 dimensions leave a quarter of a 4 kB page empty; five fill one of 8 kB.
_FILE_PRAGMAS = ("page_size = 8192", "journal_mode = WAL")
_CONNECTION_PRAGMAS = (
    # A commit is on the disk before it is told: a handful per document, 0.5 ms each where it was measured.
    "synchronous = FULL",
    "foreign_keys = ON",
    # Deleted text is overwritten with zeros.
    "secure_delete = ON",
    f"journal_size_limit = {_LARGEST_LOG_BYTES}",
)
_CHECKPOINT_WAIT_SECONDS = 1.0
_IDLE_CONNECTIONS = 4
# More at once would only share the processors. SQLite keeps a closed connection's file open while another of the
# process lives, so this also bounds the open files: 64 collections stay below the usual limit of 1,024.
_MOST_CONNECTIONS = 8
# Some ten milliseconds of work; each call takes the interpreter's lock once.
_STEPS_BETWEEN_CLOCK_READINGS = 1_000_000


class Database:
    """Hand out transactions on one file. Thread-safe, and safe for several processes.

    Connections are pooled: a thread that reads has one of its own while it reads, so none outlives a thread's need.
    Nothing here creates a folder, and only `migrate` creates the file, so a deleted collection stays deleted.
    """

    def __init__(self, path: Path, *, read_seconds: float, write_seconds: float, mapped_bytes: int = 0) -> None:
        self._path = path
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        # SQLite lets waiting writers poll; within a process a lock wakes the next one at once.
        self._writer = threading.Lock()
        self._activity = threading.Condition()
        self._active = 0
        self._closed = False
        self._engine = self._create_engine()
        self._mapping = threading.Lock()
        self._mapped = self._create_engine(mapped_bytes=mapped_bytes)
        self._watcher = CommitWatcher(self._engine)

    def migrate(self, *, creates: bool = True) -> None:
        """Bring the file to head, one process at a time; where there is none, make it or raise `StoreDamaged`."""
        if not self._path.exists() and self._path.parent.exists() and not creates:
            raise StoreDamaged(f"{_NAME} is missing", hint=_REMEDY)
        if self._path.exists():
            with self.reading(snapshot=True) as connection:
                if not needs_migration(connection, "collection"):
                    return
        engine = self._create_engine(creates=True)
        try:
            with self._translated(), engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                migrate(connection, "collection")
                connection.commit()
        finally:
            engine.dispose()

    @contextmanager
    def reading(self, *, snapshot: bool = False, limited: bool = True) -> Iterator[Connection]:
        """Give a connection for reading; with `snapshot` all its statements see one moment.

        Raises `Unavailable` when a statement runs past the time limit, unless not `limited`.
        """
        with self._read(self._engine, limited=limited) as connection:
            if snapshot:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def reading_scattered(self) -> Iterator[Connection]:
        """Give a connection for many rows from all over the file, which takes half the time where the file is mapped.

        One connection has its first `mapped_bytes` mapped; who finds that in use is given another.
        """
        if not self._mapping.acquire(blocking=False):
            with self.reading() as connection:
                yield connection
            return
        try:
            with self._read(self._mapped) as connection:
                yield connection
        finally:
            self._mapping.release()

    @contextmanager
    def writing(self, *, erases: bool = False) -> Iterator[Connection]:
        """Give the one connection that writes; commit at the end, roll back on any error.

        With `erases` the log, which still holds what was deleted, is emptied after the commit.
        Raises `StoreBusy` when another writer does not end in time, `StorageFull` for a full disk.
        """
        with self._used():
            if not self._writer.acquire(timeout=self._write_seconds):
                raise self._busy()
            try:
                with self._translated(), self._engine.connect() as connection:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                    yield connection
                    connection.commit()
                    if erases or self._log_bytes() > _LARGEST_LOG_BYTES:
                        self._empty_log(connection)
            finally:
                self._writer.release()

    def copy(self, target: Path, clean: Sequence[str] = ()) -> None:
        """Write the database as it is at one moment to a new file, while others write; `clean` runs on the copy."""
        with self.reading(snapshot=True, limited=False) as connection:
            # Only the first read fixes the moment.
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            copy_database(connection.connection.driver_connection, target, clean)

    def compact(self) -> None:
        """Write the file anew without what was deleted, and empty the log, which still holds it.

        Raises `StoreBusy` where another writer, or a reader of what was before, does not end in time.
        """
        with self._used(), self._translated(), self._engine.connect() as connection:
            if not self._writer.acquire(timeout=self._write_seconds):
                raise self._busy()
            try:
                connection.exec_driver_sql("VACUUM")
                is_held, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            finally:
                self._writer.release()
            if is_held:
                raise self._busy()

    def moment(self) -> Moment:
        """Return what every commit changes, by whichever connection or process; nothing else is read."""
        with self._used(), self._translated():
            return self._watcher.moment()

    def bytes_on_disk(self) -> int:
        """Return the size of the file and its log; raises `NotFound` when they were deleted."""
        try:
            return self._path.stat().st_size + self._log_bytes()
        except FileNotFoundError:
            raise _gone() from None

    def close(self) -> None:
        """Refuse new work, wait for what is running, and close every connection."""
        with self._activity:
            self._closed = True
            self._activity.wait_for(lambda: self._active == 0)
        self._watcher.close()
        self._mapped.dispose()
        self._engine.dispose()

    @contextmanager
    def _read(self, engine: Engine, *, limited: bool = True) -> Iterator[Connection]:
        with self._used(), self._translated(), engine.connect() as connection:
            deadline: _Deadline = connection.info["deadline"]
            deadline.set(self._read_seconds if limited else None)
            try:
                yield connection
            finally:
                deadline.set(None)

    def _create_engine(self, *, creates: bool = False, mapped_bytes: int = 0) -> Engine:
        driver = sqlite_driver()
        address = f"{self._path.absolute().as_uri()}?mode={'rwc' if creates else 'rw'}"
        pragmas = (*(_FILE_PRAGMAS if creates else ()), *_CONNECTION_PRAGMAS, f"mmap_size = {mapped_bytes}")

        def connect() -> Any:
            connection = driver.connect(
                address, uri=True, timeout=self._write_seconds, isolation_level=None, check_same_thread=False
            )
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.enable_load_extension(False)
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            return connection

        engine = create_engine(
            "sqlite+pysqlite://",
            module=driver,
            creator=connect,
            poolclass=QueuePool,
            pool_size=_IDLE_CONNECTIONS,
            # One of them watches for commits, one has the file mapped.
            max_overflow=_MOST_CONNECTIONS - 2 - _IDLE_CONNECTIONS,
            pool_timeout=self._read_seconds,
            pool_use_lifo=True,
        )
        event.listen(engine, "connect", _watch_the_clock)
        return engine

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._activity:
            if self._closed:
                raise Unavailable("the collection was closed meanwhile", hint="try again", retry_after=1)
            self._active += 1
        try:
            yield
        finally:
            with self._activity:
                self._active -= 1
                self._activity.notify_all()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite_driver().Error) as error:
            name = failure_name(error)
            if name.startswith("SQLITE_BUSY"):
                raise self._busy() from error
            if name == "SQLITE_INTERRUPT":
                raise self._too_slow() from error
            if name.startswith("SQLITE_CANTOPEN"):
                raise _gone() from error
            failure = storage_failure(error, _NAME, remedy=_REMEDY)
            if failure is not None:
                raise failure from error
            raise
        except PoolTimeout as error:
            raise StoreBusy("too many reads of the collection are running", hint="try again", retry_after=1) from error

    def _log_bytes(self) -> int:
        try:
            return self._path.with_name(f"{self._path.name}-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def _empty_log(self, connection: Connection) -> None:
        """Move the log into the file and cut it to nothing, unless readers hold on to it for too long.

        What was committed stays committed, so a failure here is no failure of the write; the next one tries again.
        """
        try:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_SECONDS * 1000:.0f}")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        except DBAPIError as error:
            _logger.warning(
                "a collection's log was not emptied", extra={"path": str(self._path), "error": str(error.orig)}
            )
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {self._write_seconds * 1000:.0f}")

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"the collection was being written for {self._write_seconds:g} s", hint="try again", retry_after=1
        )

    def _too_slow(self) -> Unavailable:
        return Unavailable(
            f"a query of the collection took longer than {self._read_seconds:g} s",
            code="search_timeout",
            hint="narrow the filter, or raise FOOTNOTE_SEARCH_TIMEOUT_SECONDS",
        )


def _gone() -> NotFound:
    return NotFound("the collection's files are not there", hint="was it deleted?")


class _Deadline:
    """A moment on the monotonic clock after which a connection's statement is stopped."""

    def __init__(self) -> None:
        self._moment: float | None = None

    def set(self, seconds: float | None) -> None:
        self._moment = None if seconds is None else time.monotonic() + seconds

    def passed(self) -> bool:
        return self._moment is not None and time.monotonic() > self._moment


def _watch_the_clock(driver_connection: Any, record: Any) -> None:
    deadline = record.info["deadline"] = _Deadline()
    driver_connection.set_progress_handler(deadline.passed, _STEPS_BETWEEN_CLOCK_READINGS)
