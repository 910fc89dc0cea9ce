"""Keep the vectors of a next space beside the present ones, until all are there and take their place at once.

They stand by the hash of the text that was embedded. A parent's, which no text was embedded for, stands by the
parent's key in hex digits.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    LargeBinary,
    Table,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from app.domain import indexed_text
from app.embedding_space import EmbeddingSpace, same_space
from app.stores.changes import log
from app.stores.expressions import insert_or_skip, one_of, stored_vector
from app.stores.port import IndexedChunk, VectorField
from app.stores.schema import (
    chunks,
    content_vectors,
    embedding_space,
    kept_vectors,
    next_space,
    next_vectors,
    parent_vectors,
    staged_vectors,
    vectors,
)
from app.stores.upkeep import EmbedNext, NextText
from app.stores.vectors import loaded_vector, parent_vector, space_of, space_row

_MOST_LATE = 500
"""Texts that are embedded while writers wait; of more, there is another round."""

_NO_CHUNK = 0
_VECTOR_TABLES = (vectors, content_vectors, parent_vectors)


def _next_key(table: Table) -> ColumnElement[bytes]:
    """Return what a row's next vector stands by."""
    if table is parent_vectors:
        return cast(func.printf("%016x", table.c.chunk_key), LargeBinary)
    return table.c.text_hash


def _lacking(table: Table) -> ColumnElement[bool]:
    return ~exists().where(next_vectors.c.text_hash == _next_key(table))


def _is_lacking(connection: Connection, table: Table) -> bool:
    return connection.scalar(select(table.c.chunk_key).where(_lacking(table)).limit(1)) is not None


def _present_next(connection: Connection) -> EmbeddingSpace | None:
    row = connection.execute(select(next_space)).one_or_none()
    return None if row is None else space_of(row)


def begin(connection: Connection, space: EmbeddingSpace) -> EmbeddingSpace:
    """Begin to gather vectors of a space, or go on, and return it as it is stored; those of a third are forgotten."""
    begun = _present_next(connection)
    if begun is None or not same_space(begun, space):
        forget(connection)
        connection.execute(insert(next_space).values(space_row(space)))
    return _present_next(connection) or space


def forget(connection: Connection) -> None:
    """Forget everything of a next space."""
    connection.execute(delete(next_vectors))
    connection.execute(delete(next_space))


def lacking_texts(connection: Connection, after: int, limit: int) -> list[NextText]:
    """Return texts without a next vector, of chunks with keys from `after` on, by key."""
    found: dict[tuple[int, bytes], NextText] = {}
    for table in (vectors, content_vectors):
        rows = (
            select(table.c.chunk_key, table.c.text_hash, chunks.c.context, chunks.c.text)
            .join(chunks, chunks.c.key == table.c.chunk_key)
            .where(table.c.chunk_key >= after, _lacking(table))
            .order_by(table.c.chunk_key)
            .limit(limit)
        )
        for key, text_hash, context, text in connection.execute(rows):
            whole = text if table is content_vectors else indexed_text(context, text)
            found[key, text_hash] = NextText(key, text_hash, whole)
    return [found[place] for place in sorted(found)][:limit]


def keep(connection: Connection, fresh: Mapping[bytes, NDArray[np.float32]]) -> None:
    """Keep next vectors by the hash of their texts."""
    rows = [{"text_hash": text_hash, "vector": stored_vector(vector)} for text_hash, vector in fresh.items()]
    if rows:
        connection.execute(insert_or_skip(next_vectors), rows)


def keep_parents(connection: Connection, limit: int) -> int:
    """Derive the next vectors of some parents that lack one from those of their children; return how many."""
    wanted = list(connection.scalars(select(parent_vectors.c.chunk_key).where(_lacking(parent_vectors)).limit(limit)))
    children = (
        select(chunks.c.parent_key, next_vectors.c.vector)
        .join(vectors, vectors.c.chunk_key == chunks.c.key)
        .join(next_vectors, next_vectors.c.text_hash == vectors.c.text_hash)
        .where(one_of(chunks.c.parent_key, "parent_keys"))
        .order_by(chunks.c.ordinal)
    )
    inside: dict[int | None, list[NDArray[np.float32]]] = {}
    for parent_key, vector in connection.execute(children, {"parent_keys": wanted}):
        inside.setdefault(parent_key, []).append(loaded_vector(vector))
    keep(connection, {f"{key:016x}".encode(): parent_vector(np.stack(rows)) for key, rows in inside.items()})
    return len(inside)


def counts(connection: Connection) -> tuple[int, int]:
    """Return how many rows of vectors have a next one, and how many there are."""
    total = lacking = 0
    for table in _VECTOR_TABLES:
        total += connection.scalar(select(func.count()).select_from(table)) or 0
        lacking += connection.scalar(select(func.count()).select_from(table).where(_lacking(table))) or 0
    return total - lacking, total


def next_chunks(connection: Connection, after: int, limit: int, field: VectorField) -> list[IndexedChunk]:
    """Return the field's chunks with their next vectors by key, those after key `after`."""
    rows, vector = _next_rows(field)
    wanted = (
        select(chunks.c.key, chunks.c.document_key, vector.label("vector"))
        .select_from(rows)
        .where(chunks.c.key > bindparam("after"))
        .order_by(chunks.c.key)
        .limit(bindparam("limit"))
    )
    found = connection.execute(wanted, {"after": after, "limit": limit})
    return [IndexedChunk(row.key, row.document_key, "", loaded_vector(row.vector)) for row in found]


def _next_rows(field: VectorField) -> tuple[FromClause, ColumnElement[bytes]]:
    if field == "parent":
        rows = parent_vectors.join(chunks, chunks.c.key == parent_vectors.c.chunk_key)
        return rows.join(next_vectors, next_vectors.c.text_hash == _next_key(parent_vectors)), next_vectors.c.vector
    rows = vectors.join(chunks, chunks.c.key == vectors.c.chunk_key)
    rows = rows.join(next_vectors, next_vectors.c.text_hash == vectors.c.text_hash)
    if field == "context":
        return rows, next_vectors.c.vector
    clean = next_vectors.alias("clean")
    rows = rows.outerjoin(content_vectors, content_vectors.c.chunk_key == vectors.c.chunk_key)
    rows = rows.outerjoin(clean, clean.c.text_hash == content_vectors.c.text_hash)
    return rows, func.coalesce(clean.c.vector, next_vectors.c.vector)


def complete(connection: Connection, embed: EmbedNext) -> None:
    """Embed the texts that came last, if they are few; the next index, built before them, hears of their chunks."""
    late = lacking_texts(connection, 0, _MOST_LATE + 1)
    if not late or len(late) > _MOST_LATE:
        return
    late_parents = list(connection.scalars(select(parent_vectors.c.chunk_key).where(_lacking(parent_vectors))))
    keep(connection, embed(late))
    while keep_parents(connection, _MOST_LATE) == _MOST_LATE:
        pass
    log(connection, sorted({text.chunk_key for text in late} | set(late_parents)), "upsert")


def adopt(connection: Connection) -> bool:
    """Put every next vector in the place of the present one and its space in that of theirs.

    Returns False, with nothing done, while a vector lacks its next one. Vectors that no chunk has, those of kept
    versions and of jobs in work, are of the space before and go.
    """
    space = _present_next(connection)
    if space is None or any(_is_lacking(connection, table) for table in _VECTOR_TABLES):
        return False
    for table in _VECTOR_TABLES:
        vector = select(next_vectors.c.vector).where(next_vectors.c.text_hash == _next_key(table)).scalar_subquery()
        connection.execute(update(table).values(vector=vector))
    for outdated in (kept_vectors, staged_vectors, embedding_space):
        connection.execute(delete(outdated))
    connection.execute(insert(embedding_space).values(space_row(space)))
    forget(connection)
    # No chunk changes, so indexes of words have nothing to do; the line tells every process to look.
    log(connection, [_NO_CHUNK], "delete")
    return True
