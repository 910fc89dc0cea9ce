"""Keep the change log that every index follows, and the numbers that only grow."""

from collections.abc import Iterable
from typing import Literal

from sqlalchemy import Connection, bindparam, delete, func, insert, literal, select, update

from app.stores.port import Change
from app.stores.schema import changes, chunks, counters

Operation = Literal["upsert", "delete"]

_COUNTED = select(counters.c.value).where(counters.c.name == bindparam("counter"))
_NEWEST = select(func.max(changes.c.revision))


def advance(connection: Connection, counter: str, by: int = 1) -> int:
    """Add to a counter and return its new value; a rolled back transaction gives the numbers back."""
    statement = update(counters).where(counters.c.name == counter).values(value=counters.c.value + by)
    return connection.execute(statement.returning(counters.c.value)).scalar_one()


def counted(connection: Connection, counter: str) -> int:
    """Return a counter's present value."""
    return connection.execute(_COUNTED, {"counter": counter}).scalar_one()


def log(connection: Connection, chunk_keys: Iterable[int], operation: Operation) -> None:
    """Append a line for each chunk."""
    lines = [{"chunk_key": key, "operation": operation} for key in chunk_keys]
    if lines:
        connection.execute(insert(changes), lines)


def log_deleted_documents(connection: Connection, document_keys: list[int]) -> None:
    """Append a `delete` line for each chunk of the documents."""
    gone = select(chunks.c.key, literal("delete")).where(chunks.c.document_key.in_(document_keys))
    connection.execute(insert(changes).from_select(["chunk_key", "operation"], gone))


def revision(connection: Connection) -> int:
    """Return the newest line's revision, 0 for an empty log."""
    return connection.scalar(_NEWEST) or 0


def oldest_revision(connection: Connection) -> int:
    """Return the revision before the oldest line."""
    oldest = connection.scalar(select(func.min(changes.c.revision)))
    return 0 if oldest is None else oldest - 1


def trim(connection: Connection, keep: int, limit: int) -> int:
    """Forget lines older than the newest `keep` (at least 1), the oldest first and at most `limit`; return how many."""
    last = min(revision(connection) - keep, oldest_revision(connection) + limit)
    return connection.execute(delete(changes).where(changes.c.revision <= last)).rowcount


def changes_after(connection: Connection, after: int, limit: int) -> list[Change]:
    """Return lines after a revision, oldest first."""
    lines = select(changes).where(changes.c.revision > after).order_by(changes.c.revision).limit(limit)
    return [Change(line.revision, line.chunk_key, line.operation) for line in connection.execute(lines)]
