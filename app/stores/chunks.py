"""Write and read chunks with their vectors."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from app.domain import Chunk, indexed_text
from app.stores.changes import advance, log
from app.stores.expressions import gathered, numbers, one_of, stored_vector
from app.stores.port import FoundChunk, IndexedChunk, Keys
from app.stores.schema import chunks, documents, vectors
from app.stores.vectors import loaded_vector

_ROWS_AT_ONCE = 1000

_FOUND = select(
    chunks.c.key,
    chunks.c.text,
    chunks.c.start,
    chunks.c.end,
    chunks.c.ordinal,
    chunks.c.token_count,
    chunks.c.page_start,
    chunks.c.page_end,
    chunks.c.heading_path,
    documents.c.id,
    documents.c.title,
    documents.c.metadata,
).join(documents)
_INDEXED = select(chunks.c.key, chunks.c.document_key, chunks.c.context, chunks.c.text, vectors.c.vector).join(vectors)


_FOUND_BY_KEY = _FOUND.where(one_of(chunks.c.key, "chunk_keys"))
_INDEXED_BY_KEY = _INDEXED.where(one_of(chunks.c.key, "chunk_keys")).order_by(chunks.c.key)
_INDEXED_AFTER = _INDEXED.where(chunks.c.key > bindparam("after")).order_by(chunks.c.key).limit(bindparam("limit"))


def chunk_id(chunk_key: int) -> str:
    """Return the public id of a chunk: as stable as its key, and used once in its collection."""
    return f"c{chunk_key}"


def replace_chunks(
    connection: Connection,
    document_key: int,
    fresh: Sequence[Chunk],
    fresh_vectors: NDArray[np.float32],
    text_hashes: Sequence[bytes],
) -> None:
    """Put a document's chunks in the place of those it had, and log what an index must do.

    A chunk whose indexed text and vector were there before keeps its key, so no index hears of it.
    """
    kept, gone = _match(connection, document_key, fresh_vectors, text_hashes)
    connection.execute(delete(chunks).where(chunks.c.document_key == document_key))
    keys = _assign_keys(connection, kept, len(fresh))
    for first in range(0, len(fresh), _ROWS_AT_ONCE):
        some = range(first, min(first + _ROWS_AT_ONCE, len(fresh)))
        connection.execute(insert(chunks), [_chunk_row(keys[i], document_key, fresh[i]) for i in some])
        rows = [
            {"chunk_key": keys[i], "text_hash": text_hashes[i], "vector": stored_vector(fresh_vectors[i])} for i in some
        ]
        connection.execute(insert(vectors), rows)
    log(connection, gone, "delete")
    log(connection, (key for place, key in enumerate(keys) if place not in kept), "upsert")


def found_chunks(connection: Connection, chunk_keys: Sequence[int]) -> list[FoundChunk]:
    """Return the chunks that exist, in the order asked."""
    by_key = {row.key: row for row in connection.execute(_FOUND_BY_KEY, {"chunk_keys": chunk_keys})}
    return [_found(by_key[key]) for key in chunk_keys if key in by_key]


def document_chunks(connection: Connection, document_id: str, limit: int, after: int | None) -> list[FoundChunk]:
    """Return a document's chunks by ordinal, those after ordinal `after`."""
    wanted = _FOUND.where(documents.c.id == document_id).order_by(chunks.c.ordinal).limit(limit)
    if after is not None:
        wanted = wanted.where(chunks.c.ordinal > after)
    return [_found(row) for row in connection.execute(wanted)]


def indexed_chunks(connection: Connection, chunk_keys: Sequence[int]) -> list[IndexedChunk]:
    """Return what an index needs of those of the chunks that exist, by key."""
    return _indexed(connection.execute(_INDEXED_BY_KEY, {"chunk_keys": chunk_keys}))


def all_chunks(connection: Connection, after: int, limit: int) -> list[IndexedChunk]:
    """Return chunks by key, those after key `after`."""
    return _indexed(connection.execute(_INDEXED_AFTER, {"after": after, "limit": limit}))


def chunk_keys(connection: Connection) -> Keys:
    """Return every chunk's key, sorted."""
    return np.sort(numbers(connection.scalar(select(gathered(chunks.c.key))), np.int64))


def _match(
    connection: Connection, document_key: int, fresh_vectors: NDArray[np.float32], text_hashes: Sequence[bytes]
) -> tuple[dict[int, int], list[int]]:
    """Return the keys that fresh chunks keep, by their place, and the keys that go."""
    places: dict[bytes, deque[int]] = defaultdict(deque)
    for place, fresh_hash in enumerate(text_hashes):
        places[fresh_hash].append(place)
    kept: dict[int, int] = {}
    gone: list[int] = []
    present = select(vectors).join(chunks).where(chunks.c.document_key == document_key).order_by(chunks.c.ordinal)
    for row in connection.execute(present):
        same_text = places.get(row.text_hash)
        if same_text and row.vector == stored_vector(fresh_vectors[same_text[0]]):
            kept[same_text.popleft()] = row.chunk_key
        else:
            gone.append(row.chunk_key)
    return kept, gone


def _assign_keys(connection: Connection, kept: dict[int, int], count: int) -> list[int]:
    new = count - len(kept)
    unused = iter(range(advance(connection, "chunk_key", by=new) - new + 1, 2**63))
    return [kept[place] if place in kept else next(unused) for place in range(count)]


def _chunk_row(key: int, document_key: int, chunk: Chunk) -> dict[str, Any]:
    return {
        "key": key,
        "document_key": document_key,
        "ordinal": chunk.ordinal,
        "start": chunk.start,
        "end": chunk.end,
        "text": chunk.text,
        "context": chunk.context,
        "heading_path": list(chunk.heading_path),
        "page_start": chunk.page_start,
        "page_end": chunk.page_end,
        "kind": chunk.kind,
        "token_count": chunk.token_count,
    }


def _found(row: Row[*tuple[Any, ...]]) -> FoundChunk:
    return FoundChunk(
        chunk_key=row.key,
        chunk_id=chunk_id(row.key),
        document_id=row.id,
        title=row.title,
        metadata=row.metadata,
        text=row.text,
        start=row.start,
        end=row.end,
        ordinal=row.ordinal,
        token_count=row.token_count,
        page_start=row.page_start,
        page_end=row.page_end,
        heading_path=tuple(row.heading_path),
    )


def _indexed(rows: Iterable[Row[*tuple[Any, ...]]]) -> list[IndexedChunk]:
    return [
        IndexedChunk(row.key, row.document_key, indexed_text(row.context, row.text), loaded_vector(row.vector))
        for row in rows
    ]
