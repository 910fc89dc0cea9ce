"""Put a document's chunks, parents and vectors in the place of those it had, and tell the change log."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, delete, insert, select

from app.domain import Chunk, indexed_text, text_hash
from app.stores.changes import advance, log
from app.stores.expressions import stored_vector
from app.stores.prepared import PreparedDocument
from app.stores.schema import chunks, content_vectors, parent_vectors, vectors
from app.stores.vectors import parent_vector

_ROWS_AT_ONCE = 1000

_Vectors: TypeAlias = tuple[bytes | None, ...]
"""All vectors of one chunk, as they are stored."""

_Present: TypeAlias = Iterator[tuple[int, bytes, _Vectors]]
"""Key, hash of the indexed text, and vectors of each chunk that a document has."""

_CHILDREN = (
    select(vectors, content_vectors.c.vector.label("content"))
    .join(chunks, chunks.c.key == vectors.c.chunk_key)
    .outerjoin(content_vectors, content_vectors.c.chunk_key == vectors.c.chunk_key)
    .order_by(chunks.c.ordinal)
)
_PARENTS = (
    select(chunks.c.key, chunks.c.context, chunks.c.text, parent_vectors.c.vector)
    .outerjoin(parent_vectors)
    .where(chunks.c.kind == "parent")
    .order_by(chunks.c.ordinal)
)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """The chunks of one kind to be written, by place."""

    chunks: Sequence[Chunk]
    hashes: Sequence[bytes]
    vectors_of: Callable[[int], _Vectors]


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys that fresh chunks get, by place; the places that keep the key they had; and the keys that go."""

    keys: Sequence[int]
    kept: frozenset[int]
    gone: Sequence[int]


def replace_chunks(
    connection: Connection, document_key: int, prepared: PreparedDocument, *, keeps: bool = True
) -> None:
    """Put a document's chunks in the place of those it had, and log what an index must do.

    A chunk whose indexed text and vectors were there before keeps its key, so no index hears of it. Of parents an
    index hears where they have a vector. Without `keeps` every chunk gets a new key, so that indexes read it again.
    """
    fresh_children, fresh_parents = _children(prepared), _parents(prepared)
    children = _keys(connection, _present_children(connection, document_key), fresh_children, keeps=keeps)
    parents = _keys(connection, _present_parents(connection, document_key), fresh_parents, keeps=keeps)
    connection.execute(delete(chunks).where(chunks.c.document_key == document_key))
    _write_chunks(connection, document_key, fresh_parents, parents, {})
    key_by_ordinal = {parent.ordinal: key for parent, key in zip(fresh_parents.chunks, parents.keys, strict=True)}
    _write_chunks(connection, document_key, fresh_children, children, key_by_ordinal)
    _write_vectors(connection, fresh_children, children, fresh_parents, parents)
    log(connection, [*children.gone, *parents.gone], "delete")
    log(connection, _new(fresh_children, children), "upsert")
    log(connection, _new(fresh_parents, parents), "upsert")


def _children(prepared: PreparedDocument) -> _Fresh:
    children, content = prepared.children, prepared.content_vectors

    def vectors_of(place: int) -> _Vectors:
        clean = content[place] if content is not None and children[place].context else None
        return stored_vector(prepared.vectors[place]), None if clean is None else stored_vector(clean)

    return _Fresh(children, [child.text_hash for child in children], vectors_of)


def _parents(prepared: PreparedDocument) -> _Fresh:
    inside: dict[int | None, list[int]] = defaultdict(list)
    if prepared.content_vectors is not None:
        for place, child in enumerate(prepared.children):
            inside[child.parent].append(place)
    places = [inside[parent.ordinal] for parent in prepared.parents]
    stored = [stored_vector(parent_vector(prepared.vectors[rows])) if rows else None for rows in places]
    return _Fresh(prepared.parents, [parent.text_hash for parent in prepared.parents], lambda place: (stored[place],))


def _present_children(connection: Connection, document_key: int) -> _Present:
    for row in connection.execute(_CHILDREN.where(chunks.c.document_key == document_key)):
        yield row.chunk_key, row.text_hash, (row.vector, row.content)


def _present_parents(connection: Connection, document_key: int) -> _Present:
    for row in connection.execute(_PARENTS.where(chunks.c.document_key == document_key)):
        yield row.key, text_hash(indexed_text(row.context, row.text)), (row.vector,)


def _keys(connection: Connection, present: _Present, fresh: _Fresh, *, keeps: bool) -> _Keys:
    places: dict[bytes, deque[int]] = defaultdict(deque)
    for place, fresh_hash in enumerate(fresh.hashes):
        places[fresh_hash].append(place)
    kept: dict[int, int] = {}
    gone: list[int] = []
    for key, present_hash, present_vectors in present:
        same_text = places.get(present_hash)
        if keeps and same_text and present_vectors == fresh.vectors_of(same_text[0]):
            kept[same_text.popleft()] = key
        else:
            gone.append(key)
    new = len(fresh.chunks) - len(kept)
    unused = iter(range(advance(connection, "chunk_key", by=new) - new + 1, 2**63))
    keys = [kept[place] if place in kept else next(unused) for place in range(len(fresh.chunks))]
    return _Keys(keys, frozenset(kept), gone)


def _new(fresh: _Fresh, keys: _Keys) -> list[int]:
    """Return the keys that an index has not seen and that have a vector."""
    return [key for place, key in enumerate(keys.keys) if place not in keys.kept and fresh.vectors_of(place)[0]]


def _write_chunks(
    connection: Connection, document_key: int, fresh: _Fresh, keys: _Keys, key_by_ordinal: dict[int, int]
) -> None:
    _insert(
        connection,
        chunks,
        (
            _row(key, document_key, chunk, None if chunk.parent is None else key_by_ordinal[chunk.parent])
            for key, chunk in zip(keys.keys, fresh.chunks, strict=True)
        ),
    )


def _row(key: int, document_key: int, chunk: Chunk, parent_key: int | None) -> dict[str, Any]:
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
        "parent_key": parent_key,
        "written_context": chunk.written_context,
    }


def _write_vectors(
    connection: Connection, fresh_children: _Fresh, children: _Keys, fresh_parents: _Fresh, parents: _Keys
) -> None:
    places = range(len(children.keys))
    _insert(
        connection,
        vectors,
        (
            {"chunk_key": children.keys[i], "text_hash": fresh_children.hashes[i], "vector": vector}
            for i in places
            if (vector := fresh_children.vectors_of(i)[0])
        ),
    )
    _insert(
        connection,
        content_vectors,
        (
            {"chunk_key": children.keys[i], "text_hash": text_hash(fresh_children.chunks[i].text), "vector": vector}
            for i in places
            if (vector := fresh_children.vectors_of(i)[1])
        ),
    )
    _insert(
        connection,
        parent_vectors,
        (
            {"chunk_key": key, "vector": vector}
            for place, key in enumerate(parents.keys)
            if (vector := fresh_parents.vectors_of(place)[0])
        ),
    )


def _insert(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_AT_ONCE)):
        connection.execute(insert(table), some)
