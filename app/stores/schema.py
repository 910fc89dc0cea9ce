"""The tables of one collection. Times are microseconds since 1970 in UTC; JSON `null` is SQL `NULL`."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Named,
    String,
    Table,
    Text,
    TypedColumns,
    UniqueConstraint,
)
from sqlalchemy.types import UserDefinedType

from app.stores.column_types import CONSTRAINT_NAMES, NULLABLE_JSON, UtcTime

metadata = MetaData(naming_convention=CONSTRAINT_NAMES)


class FilterValue(UserDefinedType[str | int | float | bytes]):
    """A value that keeps its own type: SQLite converts nothing in a column declared as `BLOB`."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the declared type."""
        return "BLOB"


def _document_key(*, primary_key: bool = False) -> Column[int]:
    return Column(Integer, ForeignKey("documents.key", ondelete="CASCADE"), primary_key=primary_key)


def _chunk_key() -> Column[int]:
    return Column(Integer, ForeignKey("chunks.key", ondelete="CASCADE"), primary_key=True)


class CounterColumns(TypedColumns):
    """Numbers that only grow: `document_key`, `chunk_key`, and `scope`.

    `scope` counts the changes of what a filter can find; a cached scope is good while it stands still.
    """

    name: Named[str] = Column(String(32), primary_key=True)
    value: Named[int] = Column(BigInteger)


class EmbeddingSpaceColumns(TypedColumns):
    """The space of the stored vectors: one row, `id` 1, once the first document chose it."""

    id: Named[int] = Column(Integer, primary_key=True)
    provider: Named[str] = Column(Text)
    model: Named[str] = Column(Text)
    dimensions: Named[int] = Column(Integer)
    fingerprint: Named[bytes] = Column(LargeBinary)


class DocumentColumns(TypedColumns):
    """One document. `state` is `ready` exactly when `version` is above 0."""

    key: Named[int] = Column(Integer, primary_key=True)
    id: Named[str] = Column(Text, unique=True)
    state: Named[str] = Column(String(16))
    version: Named[int] = Column(Integer)
    etag: Named[str | None] = Column(Text)
    title: Named[str] = Column(Text)
    metadata: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    source_type: Named[str] = Column(Text)
    media_type: Named[str] = Column(Text)
    filename: Named[str | None] = Column(Text)
    content_hash: Named[str | None] = Column(Text, index=True)
    settings_hash: Named[str | None] = Column(Text)
    characters: Named[int] = Column(BigInteger)
    chunk_count: Named[int] = Column(Integer)
    chunking: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    extraction: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    warnings: Named[list[dict[str, Any]]] = Column(NULLABLE_JSON)
    error: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    created_at: Named[datetime] = Column(UtcTime)
    updated_at: Named[datetime] = Column(UtcTime, index=True)
    expires_at: Named[datetime | None] = Column(UtcTime, index=True)
    indexed_at: Named[datetime | None] = Column(UtcTime)
    language: Named[str | None] = Column(String(8), index=True)


class VersionColumns(TypedColumns):
    """One version that was ready once, with what is needed to bring it back from its original while it is `kept`."""

    document_key: Named[int] = _document_key(primary_key=True)
    version: Named[int] = Column(Integer, primary_key=True)
    etag: Named[str] = Column(Text)
    content_hash: Named[str] = Column(Text, index=True)
    title: Named[str] = Column(Text)
    metadata: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    media_type: Named[str] = Column(Text)
    filename: Named[str | None] = Column(Text)
    characters: Named[int] = Column(BigInteger)
    chunk_count: Named[int] = Column(Integer)
    settings_hash: Named[str | None] = Column(Text)
    chunking: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    extraction: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    kept: Named[bool] = Column(Boolean, server_default="1")
    created_at: Named[datetime] = Column(UtcTime)


class TextColumns(TypedColumns):
    """A segment of a canonical text, so that a piece of a long one is read without the rest."""

    document_key: Named[int] = _document_key(primary_key=True)
    start: Named[int] = Column(BigInteger, primary_key=True)
    text: Named[str] = Column(Text)


class PageColumns(TypedColumns):
    """A page's place in the canonical text."""

    document_key: Named[int] = _document_key(primary_key=True)
    number: Named[int] = Column(Integer, primary_key=True)
    start: Named[int] = Column(BigInteger)
    end: Named[int] = Column(BigInteger)


class ChunkColumns(TypedColumns):
    """One chunk. The text stands here too, since a search must not read whole segments.

    A document's parents (`kind`) have the ordinals after those of its children, which name theirs by `parent_key`.
    """

    key: Named[int] = Column(Integer, primary_key=True)
    document_key: Named[int] = _document_key()
    ordinal: Named[int] = Column(Integer)
    start: Named[int] = Column(BigInteger)
    end: Named[int] = Column(BigInteger)
    text: Named[str] = Column(Text)
    context: Named[str] = Column(Text)
    heading_path: Named[list[str]] = Column(NULLABLE_JSON)
    page_start: Named[int | None] = Column(Integer)
    page_end: Named[int | None] = Column(Integer)
    kind: Named[str] = Column(String(16))
    token_count: Named[int] = Column(Integer)
    parent_key: Named[int | None] = Column(Integer, index=True)
    written_context: Named[str | None] = Column(Text)


class VectorColumns(TypedColumns):
    """The vector of a child's indexed text, its context included, in the collection's space.

    Little-endian float32, by SHA-256 of the text that was embedded.
    """

    chunk_key: Named[int] = _chunk_key()
    text_hash: Named[bytes] = Column(LargeBinary, index=True)
    vector: Named[bytes] = Column(LargeBinary)


class ContentVectorColumns(TypedColumns):
    """The vector of a child's clean text, in a document whose indexing is `enhanced`.

    A child without a context has none: its indexed text is its clean text.
    """

    chunk_key: Named[int] = _chunk_key()
    text_hash: Named[bytes] = Column(LargeBinary, index=True)
    vector: Named[bytes] = Column(LargeBinary)


class ParentVectorColumns(TypedColumns):
    """The direction between the vectors of a parent's children, in a document whose indexing is `enhanced`.

    No text was embedded for it: it follows from `vectors`; see `parent_vector`.
    """

    chunk_key: Named[int] = _chunk_key()
    vector: Named[bytes] = Column(LargeBinary)


class KeptVectorColumns(TypedColumns):
    """A vector of a version that is kept, so that to restore it asks no model."""

    document_key: Named[int] = _document_key(primary_key=True)
    version: Named[int] = Column(Integer, primary_key=True)
    text_hash: Named[bytes] = Column(LargeBinary, primary_key=True, index=True)
    vector: Named[bytes] = Column(LargeBinary)


class KeptContextColumns(TypedColumns):
    """A context that a language model wrote for a version that is kept, by SHA-256 of the chunk's clean text."""

    document_key: Named[int] = _document_key(primary_key=True)
    version: Named[int] = Column(Integer, primary_key=True)
    text_hash: Named[bytes] = Column(LargeBinary, primary_key=True)
    context: Named[str] = Column(Text)


class StagedVectorColumns(TypedColumns):
    """A vector of a job that has not written its document yet."""

    job_id: Named[str] = Column(String(64), primary_key=True)
    text_hash: Named[bytes] = Column(LargeBinary, primary_key=True, index=True)
    vector: Named[bytes] = Column(LargeBinary)


class StagedContextColumns(TypedColumns):
    """A context that a language model wrote for a job which has not written its document yet.

    By SHA-256 of the chunk's clean text.
    """

    job_id: Named[str] = Column(String(64), primary_key=True)
    text_hash: Named[bytes] = Column(LargeBinary, primary_key=True)
    context: Named[str] = Column(Text)


class NextSpaceColumns(EmbeddingSpaceColumns):
    """The space that a re-embedding moves to: one row, `id` 1, while it runs."""


class NextVectorColumns(TypedColumns):
    """A vector in the next space, by the hash of the text that was embedded."""

    text_hash: Named[bytes] = Column(LargeBinary, primary_key=True)
    vector: Named[bytes] = Column(LargeBinary)


class ChangeColumns(TypedColumns):
    """One line of the change log; whoever trims the log keeps its newest line, which holds the revision."""

    revision: Named[int] = Column(Integer, primary_key=True)
    chunk_key: Named[int] = Column(Integer)
    operation: Named[str] = Column(String(8))


class AttributeColumns(TypedColumns):
    """One value of one metadata field, as filters look it up; see `attributes.py`.

    The primary key is the table: a condition is one range of it, read in order.
    """

    field: Named[str] = Column(Text, primary_key=True)
    kind: Named[int] = Column(Integer, primary_key=True)
    value: Named[Any] = Column(FilterValue, primary_key=True)
    document_key: Named[int] = _document_key(primary_key=True)


counters = Table("counters", metadata, CounterColumns)
embedding_space = Table("embedding_space", metadata, EmbeddingSpaceColumns)
documents = Table(
    "documents",
    metadata,
    DocumentColumns,
    # Counts and the documents that are not ready, read from this index alone.
    Index(None, "state", "chunk_count", "characters"),
)
versions = Table("versions", metadata, VersionColumns)
texts = Table("texts", metadata, TextColumns)
pages = Table("pages", metadata, PageColumns)
chunks = Table("chunks", metadata, ChunkColumns, UniqueConstraint("document_key", "ordinal"))
vectors = Table("vectors", metadata, VectorColumns)
content_vectors = Table("content_vectors", metadata, ContentVectorColumns)
parent_vectors = Table("parent_vectors", metadata, ParentVectorColumns)
kept_vectors = Table("kept_vectors", metadata, KeptVectorColumns)
kept_contexts = Table("kept_contexts", metadata, KeptContextColumns)
staged_vectors = Table("staged_vectors", metadata, StagedVectorColumns)
staged_contexts = Table("staged_contexts", metadata, StagedContextColumns)
next_space = Table("next_space", metadata, NextSpaceColumns)
next_vectors = Table("next_vectors", metadata, NextVectorColumns)
changes = Table("changes", metadata, ChangeColumns, sqlite_autoincrement=True)
attributes = Table("attributes", metadata, AttributeColumns, Index(None, "document_key"), sqlite_with_rowid=False)
