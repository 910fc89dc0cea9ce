"""Queries of every search, run on the driver itself: SQLAlchemy takes as long again as half a millisecond of work."""

from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.dialects import sqlite


class DirectQuery:
    """A query that is compiled once, for values and rows as the driver knows them: no type of a column converts any."""

    def __init__(self, query: Select[*tuple[Any, ...]]) -> None:
        compiled = query.compile(dialect=sqlite.dialect(paramstyle="qmark"))
        self._statement = str(compiled)
        self._names: list[str] = list(compiled.positiontup or ())
        self._constants = {name: value for name, value in compiled.params.items() if not compiled.binds[name].required}

    def rows(self, connection: Connection, **values: object) -> list[tuple[Any, ...]]:
        """Return every row, its columns in the query's order; raises `KeyError` where a value is missing."""
        given = self._constants | values
        driver_connection: Any = connection.connection.driver_connection
        rows: list[tuple[Any, ...]] = driver_connection.execute(
            self._statement, [given[name] for name in self._names]
        ).fetchall()
        return rows
