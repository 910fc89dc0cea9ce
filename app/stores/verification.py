"""Look for differences inside a store."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from app.domain import indexed_text, text_hash
from app.stores.attributes import Attribute
from app.stores.changes import oldest_revision
from app.stores.chunks import chunk_id
from app.stores.connection import Database
from app.stores.documents import attributes_of
from app.stores.schema import (
    attributes,
    changes,
    chunks,
    content_vectors,
    documents,
    parent_vectors,
    texts,
    vectors,
)
from app.stores.texts import SEGMENT_CHARACTERS, read_text

Difference = dict[str, Any]

_DOCUMENTS_AT_ONCE = 100

# Run for each group of documents, so built once.
_FIRST: BindParameter[int] = bindparam("first")
_LAST: BindParameter[int] = bindparam("last")
_ATTRIBUTES = select(attributes).where(attributes.c.document_key.between(_FIRST, _LAST))
_CHARACTERS = (
    select(texts.c.document_key, func.sum(func.length(texts.c.text)))
    .where(texts.c.document_key.between(_FIRST, _LAST))
    .group_by(texts.c.document_key)
)
_BEGINNINGS = select(texts.c.document_key, texts.c.text).where(
    texts.c.document_key.between(_FIRST, _LAST), texts.c.start == 0
)
_parent = chunks.alias("parent")
_CHUNKS = (
    select(
        chunks.c.document_key,
        chunks.c.key,
        chunks.c.start,
        chunks.c.end,
        chunks.c.text,
        chunks.c.context,
        chunks.c.kind,
        chunks.c.parent_key,
        vectors.c.text_hash,
        func.length(vectors.c.vector).label("bytes"),
        content_vectors.c.text_hash.label("content_hash"),
        _parent.c.document_key.label("parent_document"),
    )
    .outerjoin(vectors, vectors.c.chunk_key == chunks.c.key)
    .outerjoin(content_vectors, content_vectors.c.chunk_key == chunks.c.key)
    .outerjoin(_parent, (_parent.c.key == chunks.c.parent_key) & (_parent.c.kind == "parent"))
    .where(chunks.c.document_key.between(_FIRST, _LAST))
    .order_by(chunks.c.document_key, chunks.c.ordinal)
)


def differences(database: Database, advance: Callable[[int], None] | None) -> list[Difference]:
    """Return every difference in a collection's database; `advance` hears how many documents were looked at."""
    with database.reading(limited=False) as connection:
        found = _file_differences(connection)
    with database.reading(snapshot=True, limited=False) as connection:
        found += _log_differences(connection)
    last: int | None = 0
    looked_at = 0
    while last is not None:
        # A transaction for some documents at a time lets the log of a busy collection be emptied between them.
        with database.reading(snapshot=True, limited=False) as connection:
            some, last = _document_differences(connection, last, _DOCUMENTS_AT_ONCE)
        found += some
        looked_at += _DOCUMENTS_AT_ONCE
        if advance is not None and last is not None:
            advance(looked_at)
    return found


def _file_differences(connection: Connection) -> list[Difference]:
    """Return what SQLite itself finds wrong with the file."""
    findings = connection.exec_driver_sql("PRAGMA quick_check").scalars()
    return [_difference("damaged_file", str(finding)) for finding in findings if finding != "ok"]


def _log_differences(connection: Connection) -> list[Difference]:
    """Return chunks whose newest line in the change log does not tell what became of them."""
    newest = select(func.max(changes.c.revision)).group_by(changes.c.chunk_key)
    told = select(changes.c.chunk_key, changes.c.operation).where(changes.c.revision.in_(newest)).subquery()
    lost = select(told.c.chunk_key).outerjoin(chunks, chunks.c.key == told.c.chunk_key)
    lost = lost.where(told.c.operation == "upsert", chunks.c.key.is_(None))
    unheard = select(chunks.c.key).outerjoin(told, chunks.c.key == told.c.chunk_key)
    denied = told.c.operation == "delete"
    # A log that lost its oldest lines is silent about old chunks.
    unheard = unheard.where(denied | told.c.operation.is_(None) if oldest_revision(connection) == 0 else denied)
    # No index holds a parent without a vector.
    unheard = unheard.outerjoin(parent_vectors, parent_vectors.c.chunk_key == chunks.c.key)
    unheard = unheard.where((chunks.c.kind == "child") | parent_vectors.c.chunk_key.is_not(None))
    return [
        *(_difference("change_log", "the log misses a delete", key=key) for key in connection.scalars(lost)),
        *(_difference("change_log", "the log misses an upsert", key=key) for key in connection.scalars(unheard)),
    ]


def _document_differences(connection: Connection, after: int, limit: int) -> tuple[list[Difference], int | None]:
    """Return the differences in documents with keys above `after`, and the last key looked at, `None` at the end."""
    rows = connection.execute(
        select(documents).where(documents.c.key > after).order_by(documents.c.key).limit(limit)
    ).all()
    if not rows:
        return [], None
    some = {"first": rows[0].key, "last": rows[-1].key}
    return [
        *_attribute_differences(connection, rows, some),
        *_text_differences(connection, rows, some),
        *_chunk_differences(connection, rows, some),
    ], rows[-1].key


def _attribute_differences(
    connection: Connection, rows: Sequence[Any], some: Mapping[str, int]
) -> Iterator[Difference]:
    stored: dict[int, set[Attribute]] = defaultdict(set)
    for field, kind, value, document_key in connection.execute(_ATTRIBUTES, some):
        stored[document_key].add((field, kind, value))
    for row in rows:
        if stored[row.key] != attributes_of(row):
            yield _difference("attributes", "filters do not see the metadata as it is", row.id)


def _text_differences(connection: Connection, rows: Sequence[Any], some: Mapping[str, int]) -> Iterator[Difference]:
    stored: dict[int, int] = dict(connection.execute(_CHARACTERS, some).all())
    for row in rows:
        characters = stored.get(row.key, 0)
        if characters != row.characters:
            yield _difference("text", f"{row.characters} characters were written, {characters} are there", row.id)


def _chunk_differences(connection: Connection, rows: Sequence[Any], some: Mapping[str, int]) -> Iterator[Difference]:
    beginnings: dict[int, str] = dict(connection.execute(_BEGINNINGS, some).all())
    windows = {row.key: _Window(connection, row.key, beginnings.get(row.key, "")) for row in rows}
    ids = {row.key: row.id for row in rows}
    counts = dict.fromkeys(ids, 0)
    for chunk in connection.execute(_CHUNKS, some):
        document_id = ids[chunk.document_key]
        counts[chunk.document_key] += chunk.kind == "child"
        if chunk.text != windows[chunk.document_key].piece(chunk.start, chunk.end):
            yield _difference("chunk_text", "the chunk is not text[start:end]", document_id, chunk.key)
        if chunk.kind == "child":
            yield from (_difference(kind, detail, document_id, chunk.key) for kind, detail in _faults_of_child(chunk))
    for row in rows:
        if counts[row.key] != row.chunk_count:
            detail = f"{row.chunk_count} chunks were written, {counts[row.key]} are there"
            yield _difference("chunks", detail, row.id)


def _faults_of_child(chunk: Any) -> Iterator[tuple[str, str]]:
    if chunk.text_hash != text_hash(indexed_text(chunk.context, chunk.text)) or not chunk.bytes:
        yield "vector", "the chunk has no vector of its text"
    if chunk.content_hash is not None and chunk.content_hash != text_hash(chunk.text):
        yield "vector", "the vector of the clean text is of another one"
    if chunk.parent_key is not None and chunk.parent_document != chunk.document_key:
        yield "parent", "the parent that the chunk names is not one of its document"


class _Window:
    """Some segments of a text, moved along as its chunks are looked at in order."""

    def __init__(self, connection: Connection, document_key: int, beginning: str) -> None:
        self._connection = connection
        self._document_key = document_key
        self._start = 0
        self._text = beginning

    def piece(self, start: int, end: int) -> str:
        if start < self._start or end > self._start + len(self._text):
            self._start = start
            self._text = read_text(
                self._connection, self._document_key, start, max(end, start + 4 * SEGMENT_CHARACTERS)
            )
        return self._text[start - self._start : end - self._start]


def _difference(kind: str, detail: str, document_id: str | None = None, key: int | None = None) -> Difference:
    found_in = None if key is None else chunk_id(key)
    return {"kind": kind, "document_id": document_id, "chunk_id": found_in, "detail": detail}
