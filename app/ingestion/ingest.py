"""The verb `ingest`: accept a document, change it, delete it. One write path behind every door.

What is accepted becomes a job; `work.py` does it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from app.catalog.collections import Collection, Collections
from app.catalog.job import Job
from app.catalog.jobs import Jobs
from app.catalog.sources import Sources
from app.domain import Document
from app.errors import Conflict, EmptyDocument, NotFound, Overtaken, PreconditionFailed
from app.filters import Filter
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.inference.port import LanguageModel
from app.inference.registry import Embedders
from app.ingestion import attachments
from app.ingestion.fetch import Fetcher
from app.ingestion.isolation import ParserPool
from app.ingestion.quotas import FolderSizes, Quotas
from app.ingestion.sources import Original, Originals
from app.ingestion.submission import (
    JobPayload,
    Precondition,
    Submission,
    Submitted,
    etag_of,
    is_made_by,
    merge_patch,
    register,
    settings_hash,
    unless_refused,
)
from app.settings import Settings
from app.stores.filter_rows import passes
from app.stores.port import CollectionStore, version_of
from app.telemetry import counters

UNSET: Final = object()
"""Stands for a field that a patch does not name, since `None` is a value."""

ALWAYS: Final = Precondition()

DELETE_PAGE = 200


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Accept and work on documents; every method is safe in several processes on one data folder."""

    settings: Settings
    collections: Collections
    jobs: Jobs
    opened: OpenCollections
    embedders: Embedders
    parsers: ParserPool
    previewers: ParserPool
    sources: Sources
    spool: Path
    """This process's folder for files that are under way; it shares a file system with the originals."""
    fetcher: Fetcher | None
    """`None` where this service does not fetch URLs."""
    language_model: LanguageModel | None = None
    """`None` where none is configured."""
    sizes: FolderSizes = field(default_factory=FolderSizes)

    def originals_of(self, opened: OpenCollection) -> Originals:
        """Return the stored bytes of an open collection, which takes no more than its quotas allow."""
        folder = opened.folder / "originals"

        def admit(size: int) -> None:
            quotas = Quotas.of(self.collections.by_id(opened.id))
            quotas.check_original(size, partial(self.sizes.use, folder))

        return Originals(folder, admit)

    def originals(self, collection_id: str) -> Originals:
        """Return the stored bytes of a collection."""
        with self.opened.get(collection_id) as opened:
            return self.originals_of(opened)

    # --- accept ---

    def submit(self, collection: Collection, submission: Submission, precondition: Precondition = ALWAYS) -> Submitted:
        """Accept a document: at once where nothing needs embedding, else as a job.

        Raises `PreconditionFailed`, `QueueFull`, `QuotaExceeded`, and `EmptyDocument` for no bytes at all.
        """
        if submission.original.size == 0:
            raise EmptyDocument("the document has no bytes", hint="send the text or the file itself")
        while True:
            try:
                return self._submit(collection, submission, precondition)
            except Overtaken:
                # On what the document is now, the precondition holds or does not.
                continue

    def _submit(self, collection: Collection, submission: Submission, precondition: Precondition) -> Submitted:
        fingerprint = settings_hash(collection, submission)
        etag = etag_of(submission.original.sha256, fingerprint, submission.metadata, submission.expires_at)
        with self.opened.get(collection.id) as opened:
            store = opened.store
            existing = store.document(submission.document_id)
            precondition.check(submission.document_id, existing)
            duplicates = _duplicates(store, submission)
            if existing and existing.version and not self._in_work(collection, submission.document_id):
                same_content = existing.content_hash == submission.original.sha256 and is_made_by(
                    store.settings_hash(submission.document_id),
                    fingerprint,
                    has_language_model=self.language_model is not None,
                )
                if same_content and existing.etag == etag:
                    return Submitted(existing, "unchanged", duplicate_of=duplicates)
                # Attachments have the metadata of what they came with, which a job gives to both.
                if same_content and not attachments.listed(existing):
                    return Submitted(_update(store, existing, submission, etag), "metadata_updated", None, duplicates)
            job = self._enqueue(
                collection, store, submission, JobPayload.of(submission, etag, fingerprint, precondition)
            )
            document = store.document(submission.document_id)
        if document is None:
            raise NotFound(f"the document {submission.document_id!r} was deleted meanwhile")
        return Submitted(document, "pending", job, duplicates)

    def update(
        self,
        collection: Collection,
        document_id: str,
        *,
        title: Any = UNSET,
        metadata: Any = UNSET,
        expires_at: Any = UNSET,
        precondition: Precondition = ALWAYS,
    ) -> Submitted:
        """Change a ready document's title, metadata (JSON merge patch) or expiry without its bytes.

        Raises `PreconditionFailed` where it does not hold; a change that another one overtook is made again on what
        that one left, and its job fails if it is overtaken while it waits.
        """
        while True:
            existing = self._patchable(collection, document_id)
            precondition.check(document_id, existing)
            patched = self._patched(collection, existing, title=title, metadata=metadata, expires_at=expires_at)
            try:
                # What is not named is taken from `existing`, so nothing else may be overwritten with it.
                return self.submit(collection, patched, Precondition(if_match=existing.etag))
            except PreconditionFailed:
                continue

    def _patchable(self, collection: Collection, document_id: str) -> Document:
        with self.opened.get(collection.id) as opened:
            existing = opened.store.document(document_id)
        if existing is None:
            raise NotFound(f"there is no document {document_id!r} in this collection")
        if not existing.version:
            raise Conflict(
                f"the document {document_id!r} is {existing.state.value}",
                hint="wait until it is ready, or send it again",
            )
        return existing

    def _patched(
        self, collection: Collection, existing: Document, *, title: Any, metadata: Any, expires_at: Any
    ) -> Submission:
        if existing.content_hash is None:
            raise NotFound("the original of this document is no longer stored", hint="send the document again")
        path = self.originals(collection.id).path(existing.content_hash)
        extraction = existing.extraction or {}
        return Submission(
            existing.id,
            Original(existing.content_hash, path.stat().st_size),
            media_type=extraction.get("declared_media_type"),
            filename=existing.filename,
            title=extraction.get("given_title") if title is UNSET else title,
            metadata=existing.metadata if metadata is UNSET else merge_patch(existing.metadata, metadata),
            metadata_is_whole=True,
            expires_at=existing.expires_at if expires_at is UNSET else expires_at,
            attachment_of=extraction.get(attachments.ATTACHMENT_OF),
            depth=extraction.get("depth", 0),
            chunking=existing.chunking,
        )

    def restore(
        self,
        collection: Collection,
        document_id: str,
        version: int,
        precondition: Precondition = ALWAYS,
        scope_filter: Filter | None = None,
    ) -> Submitted:
        """Make an earlier version the newest one, from its original and, where they are kept, its vectors.

        Raises `NotFound` for a version that never was within the filter, and `Conflict` for one that is not kept.
        """
        with self.opened.get(collection.id) as opened:
            existing = opened.store.document(document_id)
            wanted = version_of(opened.store, document_id, version, scope_filter)
            originals = self.originals_of(opened)
        if existing is None or wanted is None:
            raise NotFound(f"the document {document_id!r} has no version {version}")
        if not wanted.kept or not originals.holds(wanted.content_hash):
            raise Conflict(
                f"version {version} is no longer kept",
                hint="`keep_versions` of the collection says how many versions before the present one are",
            )
        extraction = wanted.extraction or {}
        restored = Submission(
            document_id,
            Original(wanted.content_hash, originals.path(wanted.content_hash).stat().st_size),
            media_type=extraction.get("declared_media_type"),
            filename=wanted.filename,
            title=extraction.get("given_title"),
            metadata=wanted.metadata,
            metadata_is_whole=True,
            expires_at=existing.expires_at,
            attachment_of=extraction.get(attachments.ATTACHMENT_OF),
            depth=extraction.get("depth", 0),
            chunking=wanted.chunking,
        )
        return self.submit(collection, restored, precondition)

    def retry(self, collection: Collection, document_id: str, scope_filter: Filter | None = None) -> Job:
        """Put a document's last failed or cancelled job back into the queue, unless it would leave the filter."""
        jobs, _ = self.jobs.list(None, collection_id=collection.id, document_id=document_id, limit=1, cursor=None)
        with self.opened.get(collection.id) as opened:
            document = opened.store.document(document_id)
        if not jobs or document is None or not _stays_within(scope_filter, document, jobs[0]):
            raise NotFound(f"no job of the document {document_id!r} is remembered", hint="send the document again")
        return self.jobs.retry(jobs[0].id)

    # --- delete ---

    def delete(self, collection: Collection, document_ids: Sequence[str], precondition: Precondition = ALWAYS) -> int:
        """Delete documents in any state with their attachments, cancel their jobs, and bring the index up.

        Returns how many of those that were named existed.
        """
        with self.opened.get(collection.id) as opened:
            store = opened.store
            documents = {document_id: store.document(document_id) for document_id in document_ids}
            for document_id, found in documents.items():
                precondition.check(document_id, found)
            attached = attachments.of_documents(filter(None, documents.values()), store)
            documents |= attached
            self.jobs.cancel_for_document(collection.id, [*documents])
            self.sources.forget_documents(collection.id, [*documents])
            deleted = store.delete_documents(document_ids, expected_etag=precondition.etag)
            if inside := attached.keys() - set(document_ids):
                store.delete_documents([*inside])
            opened.catch_up()
            hashes = [found.content_hash for found in documents.values() if found and found.content_hash]
            self.sweep_originals(collection.id, opened, hashes)
        counters.add("documents_deleted", deleted)
        return deleted

    def delete_matching(self, collection: Collection, search_filter: Filter) -> int:
        """Delete every document that the filter lets through; return how many there were."""
        deleted = 0
        with self.opened.get(collection.id) as opened:
            while page := opened.store.list_documents(search_filter, limit=DELETE_PAGE, cursor=None).data:
                deleted += self.delete(collection, [document.id for document in page])
        return deleted

    def sweep_originals(self, collection_id: str, opened: OpenCollection, candidates: list[str] | None = None) -> int:
        """Delete originals that no document or version refers to, and no job that a document may still be made by."""
        if candidates is not None and not candidates:
            return 0
        needed = self.needed_originals(collection_id, opened)
        return self.originals_of(opened).remove_unless(needed.__contains__, candidates)

    def needed_originals(self, collection_id: str, opened: OpenCollection) -> set[str]:
        """Return the hashes of the originals that a document, a kept version or an unfinished job refers to."""
        needed = set(opened.store.content_hashes())
        for digest, document_ids in self.jobs.wanted_originals(collection_id).items():
            if any(opened.store.document(document_id) for document_id in document_ids):
                needed.add(digest)
        return needed

    def forget_unmade(self, store: CollectionStore, job: Job) -> None:
        """Drop what a cancelled job alone was to make: a document without a version that no other job works on."""
        document = store.document(job.document_id or "")
        if document is None or document.version:
            return
        others = self.jobs.unfinished(job.collection_id, document.id)
        if all(other.id == job.id for other in others):
            store.delete_documents([document.id])

    # --- look after ---

    def queue(self, collection: Collection, kind: str, payload: dict[str, Any] | None = None) -> Job:
        """Queue a job on the whole collection; `tasks.py` names the kinds."""
        return self.jobs.enqueue(
            kind, collection_id=collection.id, collection=collection.name, document_id=None, payload=payload or {}
        )

    # --- inside ---

    def _in_work(self, collection: Collection, document_id: str) -> bool:
        return bool(self.jobs.unfinished(collection.id, document_id))

    def _enqueue(
        self, collection: Collection, store: CollectionStore, submission: Submission, payload: JobPayload
    ) -> Job:
        document_id = submission.document_id
        most = Quotas.of(collection).documents
        registering = partial(register, store, document_id, payload, most_documents=most)
        with unless_refused(store, document_id, registering):
            return self.jobs.enqueue(
                "ingest",
                collection_id=collection.id,
                collection=collection.name,
                document_id=document_id,
                payload=asdict(payload),
            )


def _stays_within(scope_filter: Filter | None, document: Document, job: Job) -> bool:
    """Return whether what a caller said of the document in that job passes; what is found in files is not known yet."""
    if scope_filter is None:
        return True
    return passes(
        scope_filter,
        job.payload.get("metadata") or job.payload.get("order", {}).get("metadata") or {},
        document_id=document.id,
        source_type=document.source_type,
        created_at=document.created_at,
        updated_at=document.updated_at,
    )


def _duplicates(store: CollectionStore, submission: Submission) -> tuple[str, ...]:
    same = store.documents_with_content(submission.original.sha256)
    return tuple(found for found in same if found != submission.document_id)


def _update(store: CollectionStore, existing: Document, submission: Submission, etag: str) -> Document:
    found = {} if submission.metadata_is_whole else (existing.extraction or {}).get("metadata", {})
    return store.update_document(
        existing.id,
        etag=etag,
        title=existing.title,
        metadata={**found, **submission.metadata},
        expires_at=submission.expires_at,
        expected_etag=existing.etag,
    )
