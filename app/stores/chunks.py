"""Read chunks and their vectors."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, bindparam, select

from app.domain import ChunkKind, indexed_text
from app.stores.direct import DirectQuery
from app.stores.expressions import gathered, numbers, one_of, stored_list
from app.stores.fields import SOURCES
from app.stores.port import FoundChunk, IndexedChunk, Keys, VectorField
from app.stores.schema import chunks, documents
from app.stores.vectors import loaded_vector

_FOUND = select(
    chunks.c.key,
    chunks.c.kind,
    chunks.c.text,
    chunks.c.context,
    chunks.c.start,
    chunks.c.end,
    chunks.c.ordinal,
    chunks.c.token_count,
    chunks.c.page_start,
    chunks.c.page_end,
    chunks.c.heading_path,
    chunks.c.parent_key,
    documents.c.id,
    documents.c.title,
    documents.c.metadata,
).join(documents)
_FOUND_BY_KEY = DirectQuery(_FOUND.where(one_of(chunks.c.key, "chunk_keys")))
_FOUND_IN_DOCUMENT = DirectQuery(
    _FOUND.where(
        documents.c.id == bindparam("document_id"),
        chunks.c.kind == bindparam("kind"),
        chunks.c.ordinal > bindparam("after"),
    )
    .order_by(chunks.c.ordinal)
    .limit(bindparam("limit"))
)
_PARENT_KEYS = select(chunks.c.key, chunks.c.parent_key).where(
    one_of(chunks.c.key, "chunk_keys"), chunks.c.parent_key.is_not(None)
)

_CHILDREN = chunks.c.kind == "child"
_DOCUMENT_KEYS = select(gathered(chunks.c.key), gathered(chunks.c.document_key)).where(
    _CHILDREN, one_of(chunks.c.key, "chunk_keys")
)
_CHILD_KEYS = (
    select(chunks.c.key, chunks.c.parent_key)
    .where(one_of(chunks.c.parent_key, "parent_keys"))
    .order_by(chunks.c.ordinal)
)


def _indexed(field: VectorField) -> Select[int, int, str, str, bytes, str | None]:
    source = SOURCES[field]
    rows = source.rows.join(chunks, chunks.c.key == source.key).join(
        documents, documents.c.key == chunks.c.document_key
    )
    wanted = select(
        chunks.c.key,
        chunks.c.document_key,
        chunks.c.context,
        chunks.c.text,
        source.vector.label("vector"),
        documents.c.language,
    )
    return wanted.select_from(rows).order_by(chunks.c.key)


_INDEXED_BY_KEY = {field: _indexed(field).where(one_of(chunks.c.key, "chunk_keys")) for field in SOURCES}
_INDEXED_AFTER = {
    field: _indexed(field).where(chunks.c.key > bindparam("after")).limit(bindparam("limit")) for field in SOURCES
}
_KEYS = {field: select(gathered(source.key)).select_from(source.rows) for field, source in SOURCES.items()}


def chunk_id(chunk_key: int) -> str:
    """Return the public id of a chunk: as stable as its key, and used once in its collection."""
    return f"c{chunk_key}"


def found_chunks(connection: Connection, chunk_keys: Sequence[int]) -> list[FoundChunk]:
    """Return the chunks that exist, in the order asked."""
    found = {chunk.chunk_key: chunk for chunk in _found(_FOUND_BY_KEY, connection, chunk_keys=stored_list(chunk_keys))}
    return [found[key] for key in chunk_keys if key in found]


def parents_of(connection: Connection, chunk_keys: Sequence[int]) -> dict[int, FoundChunk]:
    """Return the parent of each of the chunks that has one, by the chunk's key."""
    parent_by_key = {row.key: row.parent_key for row in connection.execute(_PARENT_KEYS, {"chunk_keys": chunk_keys})}
    wanted = list(dict.fromkeys(parent_by_key.values()))
    parents = {parent.chunk_key: parent for parent in found_chunks(connection, wanted)}
    return {key: parents[parent_key] for key, parent_key in parent_by_key.items() if parent_key in parents}


def children_of(connection: Connection, parent_keys: Sequence[int]) -> dict[int, list[int]]:
    """Return the keys of each parent's children in the order of the text, by the parent's key."""
    children: dict[int, list[int]] = defaultdict(list)
    for row in connection.execute(_CHILD_KEYS, {"parent_keys": parent_keys}):
        children[row.parent_key].append(row.key)
    return dict(children)


def document_keys(connection: Connection, chunk_keys: Sequence[int]) -> tuple[Keys, Keys]:
    """Return the keys of those of the children that exist, and that of the document of each."""
    keys, of_documents = connection.execute(_DOCUMENT_KEYS, {"chunk_keys": chunk_keys}).one()
    return numbers(keys, np.int64), numbers(of_documents, np.int64)


def document_chunks(
    connection: Connection, document_id: str, limit: int, after: int | None, kind: ChunkKind
) -> list[FoundChunk]:
    """Return a document's chunks of one kind by ordinal, those after ordinal `after`."""
    first = -1 if after is None else after
    asked = {"document_id": document_id, "kind": kind, "after": first, "limit": limit}
    return list(_found(_FOUND_IN_DOCUMENT, connection, **asked))


def indexed_chunks(connection: Connection, chunk_keys: Sequence[int], field: VectorField) -> list[IndexedChunk]:
    """Return what an index of the field needs of those of the chunks that it holds, by key."""
    return _as_indexed(connection.execute(_INDEXED_BY_KEY[field], {"chunk_keys": chunk_keys}))


def all_chunks(connection: Connection, after: int, limit: int, field: VectorField) -> list[IndexedChunk]:
    """Return the field's chunks by key, those after key `after`."""
    return _as_indexed(connection.execute(_INDEXED_AFTER[field], {"after": after, "limit": limit}))


def chunk_keys(connection: Connection, field: VectorField) -> Keys:
    """Return the key of every chunk of the field, sorted."""
    return np.sort(numbers(connection.scalar(_KEYS[field]), np.int64))


def _found(query: DirectQuery, connection: Connection, **values: object) -> Iterator[FoundChunk]:
    for row in query.rows(connection, **values):
        key, kind, text, context, start, end, ordinal, token_count, *pages, headings, parent, name, title, about = row
        yield FoundChunk(
            chunk_key=key,
            chunk_id=chunk_id(key),
            document_id=name,
            title=title,
            metadata=json.loads(about),
            text=text,
            start=start,
            end=end,
            ordinal=ordinal,
            token_count=token_count,
            page_start=pages[0],
            page_end=pages[1],
            heading_path=tuple(json.loads(headings)),
            kind=kind,
            context=context,
            parent_id=None if parent is None else chunk_id(parent),
        )


def _as_indexed(rows: Iterable[Row[*tuple[Any, ...]]]) -> list[IndexedChunk]:
    return [
        IndexedChunk(
            row.key, row.document_key, indexed_text(row.context, row.text), loaded_vector(row.vector), row.language
        )
        for row in rows
    ]
