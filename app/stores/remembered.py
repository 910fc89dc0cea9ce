"""Facts of a database that every search asks for, read again only after a commit."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from app.stores.connection import Database

_MOST_FACTS = 32

_Fact = TypeVar("_Fact")


class Remembered:
    """Facts of one database by their names. Thread-safe; commits of other processes count too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._moment: int | None = None
        self._facts: dict[Hashable, Any] = {}

    def get(
        self, name: Hashable, read: Callable[[Connection], _Fact], is_valid: Callable[[_Fact], bool] = lambda _: True
    ) -> _Fact:
        """Return the fact, at least as new as this call; `is_valid` tells whether it also holds beyond a commit."""
        # Asked before the fact is read: what is read then may be newer than its moment, never older.
        moment = self._database.moment()
        with self._lock:
            if moment == self._moment and name in self._facts:
                known = cast("_Fact", self._facts[name])
                if is_valid(known):
                    return known
        with self._database.reading() as connection:
            fact = read(connection)
        with self._lock:
            if moment != self._moment or len(self._facts) >= _MOST_FACTS:
                self._moment = moment
                self._facts.clear()
            self._facts[name] = fact
        return fact
