"""Facts of a database that every request asks for, read again only after a commit."""

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar, cast

from sqlalchemy import Connection, Engine

_Fact = TypeVar("_Fact")

Moment: TypeAlias = tuple[int, int]
"""A state of a database: another one after every commit."""


class CommitWatcher:
    """Tells of every commit to one SQLite file, by whichever connection or process. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: Any = None
        self._connections = 0

    def moment(self) -> Moment:
        """Return what every commit changes; raises the driver's errors."""
        with self._lock:
            if self._connection is None:
                # One that never writes: SQLite tells a connection only of the commits of others.
                connection = self._engine.raw_connection()
                connection.detach()
                self._connection = connection
                # Each connection counts from its own beginning.
                self._connections += 1
            (version,) = self._connection.dbapi_connection.execute("PRAGMA data_version").fetchone()
        return self._connections, int(version)

    def close(self) -> None:
        """Close its connection; the next question opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Remembered:
    """Facts of one database by their names, at most so many. Thread-safe; commits of other processes count too."""

    def __init__(
        self,
        moment: Callable[[], Moment],
        reading: Callable[[], AbstractContextManager[Connection]],
        *,
        most: int = 32,
    ) -> None:
        self._ask_moment = moment
        self._reading = reading
        self._most = most
        self._lock = threading.Lock()
        self._moment: Moment | None = None
        self._facts: dict[Hashable, Any] = {}

    def known(self, name: Hashable) -> object:
        """Return the fact if it is remembered and still true, else `None`; nothing is read."""
        return self._known(self._ask_moment(), name)

    def get(
        self, name: Hashable, read: Callable[[Connection], _Fact], is_valid: Callable[[_Fact], bool] = lambda _: True
    ) -> _Fact:
        """Return the fact, at least as new as this call; `is_valid` tells whether it still holds without a commit.

        `None` stands for what is not there, and is read each time.
        """
        # Asked before the fact is read: what is read then may be newer than its moment, never older.
        moment = self._ask_moment()
        known = cast("_Fact | None", self._known(moment, name))
        if known is not None and is_valid(known):
            return known
        with self._reading() as connection:
            fact = read(connection)
        if fact is None:
            # Whoever asks for what is not there must push nothing out.
            return fact
        with self._lock:
            if moment != self._moment or len(self._facts) >= self._most:
                self._moment = moment
                self._facts.clear()
            self._facts[name] = fact
        return fact

    def _known(self, moment: Moment, name: Hashable) -> object:
        with self._lock:
            return self._facts.get(name) if moment == self._moment else None
