"""What a collection's store must do.

The store is the truth: documents, texts, chunks and vectors change in one transaction, which also appends to the
change log that every index follows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.domain import ChunkKind, Document, Metadata, Notice, Page
from app.embedding_space import EmbeddingSpace
from app.filters import Filter

if TYPE_CHECKING:
    from app.stores.upkeep import StoreUpkeep
from app.stores.prepared import PreparedDocument

Keys = NDArray[np.int64]
"""Chunk keys or document keys: integers that the store assigns and never uses twice."""

VectorField: TypeAlias = Literal["context", "content", "parent"]
"""What a vector stands for: a child's text with its context, which every child has; its clean text alone; or a parent.

The vectors of `content` and `parent` are written where indexing is `enhanced`. A child without one of its clean text
stands in that field by its text with context; a parent without one is not in its field.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the change log."""

    revision: int
    chunk_key: int
    operation: Literal["upsert", "delete"]


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """What an index needs of a chunk; `vector` is float32 of the collection's dimensions."""

    chunk_key: int
    document_key: int
    indexed_text: str
    vector: NDArray[np.float32]
    language: str | None = None


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with what a passage tells of its document."""

    chunk_key: int
    chunk_id: str
    document_id: str
    title: str
    metadata: Metadata
    text: str
    start: int
    end: int
    ordinal: int
    token_count: int
    page_start: int | None
    page_end: int | None
    heading_path: tuple[str, ...]
    kind: ChunkKind = "child"
    context: str = ""
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The documents a search may see. `document_keys` is sorted; `None` means all.

    `filter` is the same scope as a condition, for an engine that can filter by itself.
    """

    document_keys: Keys | None
    filter: Filter | None
    warnings: tuple[Notice, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether no document can be found in it."""
        return self.document_keys is not None and len(self.document_keys) == 0


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a list; `next_cursor` is opaque and stable under inserts."""

    data: tuple[Document, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """One line of a document's history; what is `kept` can be brought back from its original.

    `chunking` and `extraction`, which may quote its text, are `None` where it is not.
    """

    version: int
    etag: str
    content_hash: str
    title: str
    metadata: Metadata
    media_type: str
    filename: str | None
    characters: int
    chunk_count: int
    chunking: Metadata | None
    extraction: Metadata | None
    created_at: datetime
    current: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Counts of a collection; bytes are on disk."""

    documents: dict[str, int]
    chunks: int
    characters: int
    revision: int
    database_bytes: int
    original_bytes: int


class CollectionStore(Protocol):
    """One collection's truth. Thread-safe; safe for several processes on one data folder."""

    @property
    def upkeep(self) -> "StoreUpkeep":
        """Return what looks after the store."""
        ...

    # --- documents ---

    def register_document(
        self,
        document_id: str,
        *,
        title: str,
        metadata: Metadata,
        media_type: str,
        filename: str | None,
        most_documents: int | None = None,
    ) -> int:
        """Make the document known (`pending` if it is new) and return its registration, which a deletion outdates.

        A version that is ready keeps answering. Raises `QuotaExceeded` where `most_documents` are known already.
        """
        ...

    def set_state(
        self,
        document_id: str,
        registration: int,
        state: Literal["processing", "failed"],
        error: Metadata | None = None,
        extraction: Metadata | None = None,
    ) -> None:
        """Record a state of a document with no ready version; with one, only its `error` changes.

        A stale registration does nothing.
        """
        ...

    def replace_document(self, prepared: PreparedDocument) -> Document:
        """Write a version in one transaction and log its changes; chunks of the old version are deleted.

        Chunks whose `indexed_text` and vectors stay the same may keep their key. Raises `Cancelled` for an outdated
        registration, `QuotaExceeded` above `most_chunks`, `StorageFull` when the disk is full.
        """
        ...

    def update_document(
        self,
        document_id: str,
        *,
        etag: str,
        title: str,
        metadata: Metadata,
        expires_at: datetime | None,
        expected_etag: str | None = None,
    ) -> Document:
        """Change what needs no embedding.

        Raises `NotFound`, and `Overtaken` where the document's etag is not the one expected, if any.
        """
        ...

    def delete_documents(self, document_ids: Sequence[str], *, expected_etag: str | None = None) -> int:
        """Delete documents with all that belongs to them in one transaction; return how many existed.

        Raises `Overtaken`, with nothing deleted, where one of them has another etag than the expected one, if any.
        """
        ...

    def document(self, document_id: str) -> Document | None:
        """Return the document, or `None`."""
        ...

    def settings_hash(self, document_id: str) -> str | None:
        """Return the settings hash of the document's ready version."""
        ...

    def documents_with_content(self, content_hash: str, limit: int = 10) -> list[str]:
        """Return ids of ready documents whose original has these bytes."""
        ...

    def expired_documents(self, now: datetime, limit: int, *, unchanged_since: datetime | None = None) -> list[str]:
        """Return ids of ready documents whose `expires_at` has come, or that have not changed since a time."""
        ...

    def without_ended(self, search_filter: Filter | None, max_age: timedelta | None) -> Filter | None:
        """Return the filter, within the documents whose time is not over by now; those that are await their deletion.

        Over is the time of a document whose `expires_at` has come or that has not changed for `max_age`.
        """
        ...

    def list_documents(
        self, scope_filter: Filter | None, *, limit: int, cursor: str | None, states: Sequence[str] = ()
    ) -> DocumentPage:
        """Return documents by key; raises `InvalidCursor` for a cursor that is none of ours."""
        ...

    def text(self, document_id: str, start: int, end: int | None) -> str:
        """Return `[start, end)` of the ready version's canonical text; raises `NotFound`."""
        ...

    def pages(self, document_id: str) -> list[Page]:
        """Return the ready version's page map, empty for a text without pages; raises `NotFound`."""
        ...

    def chunks(self, document_id: str, *, limit: int, after: int | None, kind: ChunkKind = "child") -> list[FoundChunk]:
        """Return the document's chunks of one kind by ordinal, those after ordinal `after`."""
        ...

    def versions(
        self, document_id: str, *, limit: int, before: int | None = None, scope_filter: Filter | None = None
    ) -> list[DocumentVersion]:
        """Return up to `limit` lines of the history, newest first, those before a version that pass the filter."""
        ...

    def forget_versions(self, keep: int) -> int:
        """Let go of all but the `keep` versions before each document's present one; return how many were."""
        ...

    def content_hashes(self) -> Iterator[str]:
        """Yield each content hash that a document or a kept version refers to."""
        ...

    # --- vectors kept between attempts ---

    def known_vectors(self, text_hashes: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors this collection has, live, kept or staged, by SHA-256 of the indexed text."""
        ...

    def stage_vectors(
        self, job_id: str, vectors: dict[bytes, NDArray[np.float32]], space: EmbeddingSpace | None = None
    ) -> None:
        """Keep a batch's vectors, so that an interrupted job embeds nothing twice; raise `Reembedded` as a write."""
        ...

    def known_contexts(self, job_id: str, document_id: str, title: str) -> dict[bytes, str]:
        """Return what a language model wrote of chunks, by SHA-256 of their clean text.

        That is what the job staged, and what the document's present and kept versions of this title have.
        """
        ...

    def stage_contexts(self, job_id: str, fresh: dict[bytes, str]) -> None:
        """Keep what a language model wrote, so that an interrupted job asks for nothing twice."""
        ...

    def drop_staged(self, job_id: str) -> None:
        """Forget what the job staged."""
        ...

    # --- search ---

    def scope(self, search_filter: Filter | None, document_ids: Sequence[str] | None) -> Scope:
        """Return the ready documents that pass, with `type_mismatch` and `unknown_metadata_field` warnings."""
        ...

    def similarities(
        self, vector: NDArray[np.float32], chunk_keys: Keys, field: VectorField = "context"
    ) -> dict[int, float]:
        """Return the exact cosine of each chunk that is still in the field."""
        ...

    def nearest(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[tuple[int, float]]:
        """Return `(chunk_key, cosine)` of the exact nearest, best first, reading every vector in scope."""
        ...

    def found_chunks(self, chunk_keys: Sequence[int]) -> list[FoundChunk]:
        """Return the chunks that still exist, in the order asked."""
        ...

    def parents_of(self, chunk_keys: Sequence[int]) -> dict[int, FoundChunk]:
        """Return the parent of each chunk that has one, by the chunk's key."""
        ...

    def children_of(self, parent_keys: Sequence[int]) -> dict[int, list[int]]:
        """Return the keys of each parent's children in the order of the text, by the parent's key."""
        ...

    def document_keys(self, chunk_keys: Sequence[int]) -> tuple[Keys, Keys]:
        """Return the keys of those of the children that still exist, and beside each that of its document."""
        ...

    def vectors_of(self, chunk_keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors, of text with context, of those of the children that still exist, by chunk key."""
        ...

    # --- what an index follows ---

    def revision(self) -> int:
        """Return the last revision of the change log, 0 when nothing ever changed."""
        ...

    def oldest_revision(self) -> int:
        """Return the revision before the oldest line that the log still has."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return the log's lines after a revision, oldest first."""
        ...

    def languages(self) -> tuple[str, ...]:
        """Return the languages by which documents are stemmed, beside the default of their script.

        Those of the most documents come first, as far as some thousands of each are counted, then those first by name.
        """
        ...

    def vector_fields(self) -> frozenset[VectorField]:
        """Return the fields beside `context` that hold vectors of their own."""
        ...

    def indexed_chunks(self, chunk_keys: Sequence[int], field: VectorField = "context") -> list[IndexedChunk]:
        """Return what an index of the field needs of those of the chunks that are still in it."""
        ...

    def all_chunks(self, after: int, limit: int, field: VectorField = "context") -> list[IndexedChunk]:
        """Return the field's chunks by key, those after key `after`, for a rebuild."""
        ...

    def chunk_keys(self, field: VectorField = "context") -> Keys:
        """Return the key of every chunk of the field, sorted."""
        ...

    # --- the whole ---

    def embedding_space(self) -> EmbeddingSpace | None:
        """Return the space of the stored vectors, or `None` before the first."""
        ...

    def set_embedding_space(self, space: EmbeddingSpace) -> None:
        """Fix the collection's space; raises `EmbeddingModelMismatch` if another is fixed."""
        ...

    def stats(self) -> StoreStats:
        """Return counts."""
        ...

    def verify(self, advance: Callable[[int], None] | None = None) -> list[dict[str, Any]]:
        """Return differences inside the store: `{kind, document_id, chunk_id, detail}` each.

        `advance` hears how many documents were looked at.
        """
        ...

    def snapshot(self, target: Path, *, without_work: bool = False) -> None:
        """Write the store as it is now to a new file, `without_work` all but what only unfinished jobs need."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def version_of(
    store: CollectionStore, document_id: str, version: int, scope_filter: Filter | None = None
) -> DocumentVersion | None:
    """Return one line of a document's history, if it is there and passes the filter."""
    lines = store.versions(document_id, limit=1, before=version + 1, scope_filter=scope_filter)
    return next((line for line in lines if line.version == version), None)
