"""What a collection was asked lately and which hits it gave: a ring of entries that hold none of its texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, tuple_

from app.catalog.database import Database
from app.catalog.paging import NewestFirst
from app.catalog.principal import Role
from app.catalog.tables import cleared_query_logs, collections, queries
from app.stores.column_types import utc_now

_newest_first = NewestFirst(queries)


class Operation(StrEnum):
    """What was asked for."""

    SEARCH = "search"
    SEARCH_SEVERAL = "search_several"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """A hit, without its text."""

    rank: int
    chunk_id: str
    document_id: str
    score: float


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query and what became of it.

    `query` is the beginning of one that had `query_characters`, `hits` are the first of `hit_count`, `options` what
    was said beside the query, `warnings` the codes. `key_id` is `None` for the admin key.
    """

    id: str
    collection_id: str
    created_at: datetime
    operation: Operation
    query: str
    query_characters: int
    key_id: str | None
    mode: str
    options: Mapping[str, Any]
    hit_count: int
    hits: Sequence[LoggedHit]
    degraded: Sequence[str]
    warnings: Sequence[str]
    total_ms: float
    request_id: str

    @classmethod
    def of(cls, row: RowMapping) -> "LoggedQuery":
        """Return the entry of a row of the table."""
        hits = tuple(LoggedHit(**hit) for hit in row["hits"])
        return cls(**{**row, "operation": Operation(row["operation"]), "hits": hits})

    def as_row(self) -> dict[str, Any]:
        """Return the row of the table; `asdict` would copy whatever is inside, which takes longer than to write it."""
        hits = [
            {"rank": hit.rank, "chunk_id": hit.chunk_id, "document_id": hit.document_id, "score": hit.score}
            for hit in self.hits
        ]
        return {column.name: getattr(self, column.name) for column in queries.columns} | {"hits": hits}


def keeps_queries(settings: Mapping[str, Any], role: Role) -> bool:
    """Return whether a collection's settings have the queries of a key with this role kept."""
    chosen = settings.get("query_log") or {}
    return bool(chosen.get("enabled", True)) and (role is not Role.SEARCH or bool(chosen.get("search_keys", False)))


def clear_queries(connection: Connection, collection_id: str, moment: datetime) -> None:
    """Forget what the collection was asked up to a moment, also what some process has still to write."""
    connection.execute(delete(queries).where(queries.c.collection_id == collection_id))
    connection.execute(delete(cleared_query_logs).where(cleared_query_logs.c.collection_id == collection_id))
    connection.execute(insert(cleared_query_logs), {"collection_id": collection_id, "cleared_at": moment})


class QueryLog:
    """The logs of all collections; thread-safe, and atomic between processes."""

    def __init__(self, database: Database, *, most: int, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._most = most
        self._clock = clock

    def write(self, entries: Iterable[LoggedQuery]) -> None:
        """Add entries and forget each collection's oldest above the most that it keeps.

        Left out are those of a collection that is gone, and those from before its log was cleared.
        """
        waiting = list(entries)
        with self._database.write() as connection:
            cleared = _clearings(connection, {entry.collection_id for entry in waiting})
            rows = [entry.as_row() for entry in waiting if _is_wanted(entry, cleared)]
            if rows:
                connection.execute(insert(queries), rows)
            for collection_id in cleared:
                self._trim(connection, collection_id)

    def list(
        self,
        collection_id: str,
        *,
        since: datetime | None = None,
        operation: Operation | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[Sequence[LoggedQuery], str | None]:
        """Return a page of a collection's log, newest first, and the next page's cursor."""
        query = select(queries).where(queries.c.collection_id == collection_id)
        if since is not None:
            query = query.where(queries.c.created_at >= since)
        if operation is not None:
            query = query.where(queries.c.operation == operation)
        with self._database.read() as connection:
            rows = connection.execute(_newest_first.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_first.split(rows, limit)
        return [LoggedQuery.of(row) for row in page], next_cursor

    def clear(self, collection_id: str) -> None:
        """Forget everything that the collection was asked until now."""
        with self._database.write() as connection:
            if _clearings(connection, {collection_id}):
                clear_queries(connection, collection_id, self._clock())

    def _trim(self, connection: Connection, collection_id: str) -> None:
        its = queries.c.collection_id == collection_id
        place = (queries.c.created_at, queries.c.id)
        newest_first = select(*place).where(its).order_by(place[0].desc(), place[1].desc())
        last = connection.execute(newest_first.offset(self._most).limit(1)).one_or_none()
        if last is not None:
            connection.execute(delete(queries).where(its, tuple_(*place) <= tuple(last)))


def _clearings(connection: Connection, collection_ids: set[str]) -> dict[str, datetime | None]:
    """Return when the log of each collection that is there was last cleared, `None` for never."""
    asked = select(collections.c.id, cleared_query_logs.c.cleared_at).outerjoin(cleared_query_logs)
    rows = connection.execute(asked.where(collections.c.id.in_(collection_ids)))
    return {row.id: row.cleared_at for row in rows}


def _is_wanted(entry: LoggedQuery, cleared: Mapping[str, datetime | None]) -> bool:
    if entry.collection_id not in cleared:
        return False
    cleared_at = cleared[entry.collection_id]
    return cleared_at is None or entry.created_at > cleared_at
