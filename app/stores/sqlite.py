"""One collection in one SQLite file, `collection.db` in the collection's folder."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.domain import ChunkKind, Document, DocumentState, Metadata, Page
from app.embedding_space import EmbeddingSpace
from app.filters import Filter
from app.settings import Settings
from app.stores import changes, chunks, contexts, documents, listing, scopes, texts, verification, versions
from app.stores.column_types import utc_now
from app.stores.connection import Database
from app.stores.port import (
    Change,
    DocumentPage,
    DocumentVersion,
    FoundChunk,
    IndexedChunk,
    Keys,
    Scope,
    StoreStats,
    VectorField,
)
from app.stores.prepared import PreparedDocument
from app.stores.quotas import require_room_for_chunks
from app.stores.remembered import Remembered
from app.stores.replacing import replace_chunks
from app.stores.snapshot import WITHOUT_WORK
from app.stores.sqlite_upkeep import SqliteUpkeep
from app.stores.vectors import (
    drop_staged,
    expect_space,
    fix_space,
    known_vectors,
    nearest,
    similarities,
    stage_vectors,
    stored_space,
    vector_fields,
    vectors_of,
)

DATABASE_NAME = "collection.db"
ORIGINALS_NAME = "originals"
_HASHES_AT_ONCE = 1000


class SqliteStore:
    """`CollectionStore` on SQLite; the port says what each method promises."""

    def __init__(
        self, folder: Path, settings: Settings, *, creates: bool = True, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._folder = folder
        self._most_version_lines = settings.max_version_lines
        self._clock = clock
        self._scopes = scopes.ScopeCache()
        self._database = Database(
            folder / DATABASE_NAME,
            read_seconds=settings.search_timeout_seconds,
            write_seconds=settings.write_wait_seconds,
            mapped_bytes=settings.mapped_bytes,
        )
        self._database.migrate(creates=creates)
        self._remembered = Remembered(self._database.moment, self._database.reading)
        self.upkeep = SqliteUpkeep(self._database)

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
        """Make the document known and return a registration."""
        with self._database.writing() as connection:
            return documents.register(
                connection,
                document_id,
                title=title,
                metadata=metadata,
                media_type=media_type,
                filename=filename,
                now=utc_now(),
                most=most_documents,
            )

    def set_state(
        self,
        document_id: str,
        registration: int,
        state: Literal["processing", "failed"],
        error: Metadata | None = None,
        extraction: Metadata | None = None,
    ) -> None:
        """Record a state of a document with no ready version, else its error only."""
        with self._database.writing() as connection:
            documents.set_state(connection, document_id, registration, state, error, extraction)

    def replace_document(self, prepared: PreparedDocument) -> Document:
        """Write a version in one transaction and log its changes."""
        with self._database.writing() as connection:
            expect_space(connection, prepared.space)
            if prepared.keep_versions:
                versions.keep_vectors(connection, prepared.registration, prepared.embedded_hashes)
                contexts.keep_contexts(connection, prepared)
            same_language = documents.language_of(connection, prepared.registration) == prepared.language
            key = documents.write_version(connection, prepared, utc_now())
            require_room_for_chunks(connection, prepared.most_chunks, key)
            texts.write_text(connection, key, prepared.text)
            texts.write_pages(connection, key, prepared.pages)
            # The terms of a key never change, and the language makes them.
            replace_chunks(connection, key, prepared, keeps=same_language)
            versions.forget(connection, prepared.keep_versions, key, most_lines=self._most_version_lines)
            return documents.existing(connection, prepared.id)

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
        """Change what needs no embedding."""
        with self._database.writing() as connection:
            documents.expect(connection, [document_id], expected_etag)
            documents.update_ready(
                connection, document_id, etag=etag, title=title, metadata=metadata, expires_at=expires_at, now=utc_now()
            )
            return documents.existing(connection, document_id)

    def delete_documents(self, document_ids: Sequence[str], *, expected_etag: str | None = None) -> int:
        """Delete documents with all that belongs to them in one transaction."""
        with self._database.writing(erases=True) as connection:
            documents.expect(connection, document_ids, expected_etag)
            return documents.delete_all(connection, document_ids)

    def document(self, document_id: str) -> Document | None:
        """Return the document, or `None`."""
        with self._database.reading() as connection:
            return documents.find(connection, document_id)

    def settings_hash(self, document_id: str) -> str | None:
        """Return the settings hash of the document's ready version."""
        with self._database.reading() as connection:
            return documents.settings_hash(connection, document_id)

    def documents_with_content(self, content_hash: str, limit: int = 10) -> list[str]:
        """Return ids of ready documents whose original has these bytes."""
        with self._database.reading() as connection:
            return documents.with_content(connection, content_hash, limit)

    def expired_documents(self, now: datetime, limit: int, *, unchanged_since: datetime | None = None) -> list[str]:
        """Return ids of ready documents whose `expires_at` has come, or that have not changed since a time."""
        with self._database.reading() as connection:
            return documents.expired(connection, now, unchanged_since, limit)

    def without_ended(self, search_filter: Filter | None, max_age: timedelta | None) -> Filter | None:
        """Return the filter, within the documents whose time is not over by now."""
        now = self._clock()
        ended = self._remembered.get(
            ("ended", max_age),
            lambda connection: documents.ended(connection, now, max_age),
            lambda known: known.since <= now < known.until,
        )
        return scopes.without(search_filter, ended.document_ids)

    def list_documents(
        self, scope_filter: Filter | None, *, limit: int, cursor: str | None, states: Sequence[str] = ()
    ) -> DocumentPage:
        """Return documents by key."""
        with self._database.reading(snapshot=True) as connection:
            return listing.list_documents(connection, scope_filter, limit, cursor, states)

    def text(self, document_id: str, start: int, end: int | None) -> str:
        """Return `[start, end)` of the ready version's canonical text."""
        with self._database.reading(snapshot=True) as connection:
            return texts.read_text(connection, documents.key_of_ready(connection, document_id), start, end)

    def pages(self, document_id: str) -> list[Page]:
        """Return the ready version's page map, empty for a text without pages."""
        with self._database.reading(snapshot=True) as connection:
            return texts.read_pages(connection, documents.key_of_ready(connection, document_id))

    def chunks(self, document_id: str, *, limit: int, after: int | None, kind: ChunkKind = "child") -> list[FoundChunk]:
        """Return the document's chunks of one kind by ordinal, those after ordinal `after`."""
        with self._database.reading() as connection:
            return chunks.document_chunks(connection, document_id, limit, after, kind)

    def versions(
        self, document_id: str, *, limit: int, before: int | None = None, scope_filter: Filter | None = None
    ) -> list[DocumentVersion]:
        """Return lines of the history, newest first, those before a version that pass the filter."""
        with self._database.reading() as connection:
            return list(islice(versions.history(connection, document_id, before, scope_filter), limit))

    def forget_versions(self, keep: int) -> int:
        """Let go of all but the `keep` versions before each document's present one."""
        with self._database.writing() as connection:
            return versions.forget(connection, keep, most_lines=self._most_version_lines)

    def content_hashes(self) -> Iterator[str]:
        """Yield each content hash that a document or a kept version refers to; holds no transaction between two."""
        after = ""
        while True:
            with self._database.reading(limited=False) as connection:
                found = versions.content_hashes_after(connection, after, _HASHES_AT_ONCE)
            if not found:
                return
            yield from found
            after = found[-1]

    # --- vectors kept between attempts ---

    def known_vectors(self, text_hashes: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors this collection has, live or staged, by SHA-256 of the indexed text."""
        with self._database.reading(limited=False) as connection:
            return known_vectors(connection, text_hashes)

    def stage_vectors(
        self, job_id: str, vectors: dict[bytes, NDArray[np.float32]], space: EmbeddingSpace | None = None
    ) -> None:
        """Keep a batch's vectors."""
        with self._database.writing() as connection:
            expect_space(connection, space)
            stage_vectors(connection, job_id, vectors)

    def known_contexts(self, job_id: str, document_id: str, title: str) -> dict[bytes, str]:
        """Return the contexts that the job staged, and those of the document's versions that had this title."""
        with self._database.reading(snapshot=True, limited=False) as connection:
            return contexts.known_contexts(connection, job_id, document_id, title)

    def stage_contexts(self, job_id: str, fresh: dict[bytes, str]) -> None:
        """Keep contexts for a job."""
        with self._database.writing() as connection:
            contexts.stage_contexts(connection, job_id, fresh)

    def drop_staged(self, job_id: str) -> None:
        """Forget what the job staged."""
        with self._database.writing() as connection:
            drop_staged(connection, job_id)

    # --- search ---

    def scope(self, search_filter: Filter | None, document_ids: Sequence[str] | None) -> Scope:
        """Return the ready documents that pass, with warnings."""
        wanted = scopes.combined(search_filter, document_ids)
        if wanted is None:
            return scopes.EVERYTHING
        version = self._remembered.get("scope", lambda connection: changes.counted(connection, "scope"))
        return self._scopes.get(version, wanted, partial(self._resolved, wanted))

    def _resolved(self, wanted: Filter) -> Scope:
        with self._database.reading(snapshot=True) as connection:
            return scopes.resolve(connection, wanted)

    def similarities(
        self, vector: NDArray[np.float32], chunk_keys: Keys, field: VectorField = "context"
    ) -> dict[int, float]:
        """Return the exact cosine of each chunk that is still in the field."""
        with self._database.reading_scattered() as connection:
            return similarities(connection, vector, chunk_keys, field)

    def nearest(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[tuple[int, float]]:
        """Return `(chunk_key, cosine)` of the exact nearest, best first."""
        with self._database.reading() as connection:
            return nearest(connection, vector, limit, scope.document_keys)

    def found_chunks(self, chunk_keys: Sequence[int]) -> list[FoundChunk]:
        """Return the chunks that still exist, in the order asked."""
        with self._database.reading_scattered() as connection:
            return chunks.found_chunks(connection, chunk_keys)

    def parents_of(self, chunk_keys: Sequence[int]) -> dict[int, FoundChunk]:
        """Return the parent of each chunk that has one, by the chunk's key."""
        with self._database.reading(snapshot=True) as connection:
            return chunks.parents_of(connection, chunk_keys)

    def children_of(self, parent_keys: Sequence[int]) -> dict[int, list[int]]:
        """Return the keys of each parent's children in the order of the text, by the parent's key."""
        with self._database.reading() as connection:
            return chunks.children_of(connection, parent_keys)

    def document_keys(self, chunk_keys: Sequence[int]) -> tuple[Keys, Keys]:
        """Return the keys of those of the children that still exist, and beside each that of its document."""
        with self._database.reading() as connection:
            return chunks.document_keys(connection, chunk_keys)

    def vectors_of(self, chunk_keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors of those of the children that still exist, by chunk key."""
        with self._database.reading() as connection:
            return vectors_of(connection, chunk_keys)

    # --- what an index follows ---

    def revision(self) -> int:
        """Return the last revision of the change log."""
        return self._remembered.get("revision", changes.revision)

    def oldest_revision(self) -> int:
        """Return the revision before the oldest line that the log still has."""
        with self._database.reading() as connection:
            return changes.oldest_revision(connection)

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return the log's lines after a revision, oldest first."""
        with self._database.reading(limited=False) as connection:
            return changes.changes_after(connection, after, limit)

    def languages(self) -> tuple[str, ...]:
        """Return the languages of its documents, those of the most documents first."""
        return self._remembered.get("languages", documents.languages)

    def vector_fields(self) -> frozenset[VectorField]:
        """Return the fields beside `context` that hold vectors of their own."""
        with self._database.reading() as connection:
            return vector_fields(connection)

    def indexed_chunks(self, chunk_keys: Sequence[int], field: VectorField = "context") -> list[IndexedChunk]:
        """Return what an index of the field needs of those of the chunks that are still in it."""
        with self._database.reading(limited=False) as connection:
            return chunks.indexed_chunks(connection, chunk_keys, field)

    def all_chunks(self, after: int, limit: int, field: VectorField = "context") -> list[IndexedChunk]:
        """Return the field's chunks by key, those after key `after`."""
        with self._database.reading(limited=False) as connection:
            return chunks.all_chunks(connection, after, limit, field)

    def chunk_keys(self, field: VectorField = "context") -> Keys:
        """Return the key of every chunk of the field, sorted."""
        with self._database.reading(limited=False) as connection:
            return chunks.chunk_keys(connection, field)

    # --- the whole ---

    def embedding_space(self) -> EmbeddingSpace | None:
        """Return the space of the stored vectors, or `None` before the first."""
        return self._remembered.get("space", stored_space)

    def set_embedding_space(self, space: EmbeddingSpace) -> None:
        """Fix the collection's space."""
        with self._database.writing() as connection:
            fix_space(connection, space)

    def stats(self) -> StoreStats:
        """Return counts."""
        with self._database.reading(snapshot=True) as connection:
            counts = documents.count_by_state(connection)
            revision = changes.revision(connection)
        return StoreStats(
            documents={state.value: counts[state].documents if state in counts else 0 for state in DocumentState},
            chunks=sum(count.chunks for count in counts.values()),
            characters=sum(count.characters for count in counts.values()),
            revision=revision,
            database_bytes=self._database.bytes_on_disk(),
            original_bytes=_bytes_in(self._folder / ORIGINALS_NAME),
        )

    def verify(self, advance: Callable[[int], None] | None = None) -> list[dict[str, Any]]:
        """Return differences inside the store."""
        return verification.differences(self._database, advance)

    def snapshot(self, target: Path, *, without_work: bool = False) -> None:
        """Write the store as it is at one moment to a new file."""
        self._database.copy(target, WITHOUT_WORK if without_work else ())

    def close(self) -> None:
        """Close every connection; waits for what is running."""
        self._database.close()


def _bytes_in(folder: Path) -> int:
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            # A file may be deleted while others are counted.
            with suppress(FileNotFoundError):
                total += entry.stat().st_size
    return total
