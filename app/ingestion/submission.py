"""What a caller sends in, whether it changes anything, and whether its preconditions hold."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from app.catalog.collections import Collection
from app.catalog.job import Job
from app.domain import ChunkingOptions, ContextOptions, Document, Metadata, NormalisationOptions
from app.errors import FootnoteError, PreconditionFailed
from app.indexes.languages import is_language
from app.ingestion.chunkers.options import completed_chunking
from app.ingestion.sources import Original
from app.settings import Settings
from app.stores.port import CollectionStore

PIPELINE_VERSION = 2
"""Raised when loaders, chunkers or contexts change what they make of equal bytes."""

INCOMPLETE = "-incomplete"
"""Ends the stored settings hash of a version without something that a language model may yet write for it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A document as it was sent; `media_type` is what the caller declared, if anything.

    Metadata found in the file itself is added to `metadata` unless `metadata_is_whole`.
    """

    document_id: str
    original: Original
    media_type: str | None = None
    filename: str | None = None
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    metadata_is_whole: bool = False
    expires_at: datetime | None = None
    password: str | None = field(default=None, repr=False)
    chunking: Mapping[str, Any] | None = None
    """How this document is cut, completed and checked, where it is not as its collection says."""
    attachment_of: str | None = None
    depth: int = 0
    """How many documents it came inside of."""


@dataclass(frozen=True, slots=True)
class JobPayload:
    """A submission as its job keeps it: JSON values only. The catalog wipes `password` when the job ends."""

    original: str
    etag: str
    settings_hash: str
    media_type: str | None
    filename: str | None
    title: str | None
    metadata: dict[str, Any]
    metadata_is_whole: bool
    expires_at: str | None
    if_match: str | None
    create_only: bool
    password: str | None = field(repr=False)
    chunking: dict[str, Any] | None = None
    attachment_of: str | None = None
    depth: int = 0

    @classmethod
    def of(cls, submission: Submission, etag: str, settings: str, precondition: "Precondition") -> "JobPayload":
        """Return what the job of a submission must know."""
        return cls(
            original=submission.original.sha256,
            etag=etag,
            settings_hash=settings,
            media_type=submission.media_type,
            filename=submission.filename,
            title=submission.title,
            metadata=dict(submission.metadata),
            metadata_is_whole=submission.metadata_is_whole,
            expires_at=submission.expires_at.isoformat() if submission.expires_at else None,
            if_match=precondition.if_match,
            create_only=precondition.create_only,
            password=submission.password,
            chunking=None if submission.chunking is None else dict(submission.chunking),
            attachment_of=submission.attachment_of,
            depth=submission.depth,
        )

    @property
    def expires(self) -> datetime | None:
        """Return when the document expires."""
        return datetime.fromisoformat(self.expires_at) if self.expires_at else None

    @property
    def precondition(self) -> "Precondition":
        """Return what must hold when the version is written, not only when it was sent."""
        return Precondition(self.if_match, self.create_only)


@dataclass(frozen=True, slots=True)
class Precondition:
    """`if_match` is an etag that must be the document's; `create_only` refuses an existing document."""

    if_match: str | None = None
    create_only: bool = False

    @property
    def etag(self) -> str | None:
        """Return the one etag that holds, or `None` where several do."""
        return None if self.if_match == "*" else self.if_match

    def check(self, document_id: str, existing: Document | None) -> None:
        """Raise `PreconditionFailed` if it does not hold."""
        if self.create_only and existing is not None:
            raise PreconditionFailed(f"the document {document_id!r} exists already")
        if self.if_match is None or (existing is not None and self.if_match in ("*", existing.etag)):
            return
        present = existing.etag if existing else None
        raise PreconditionFailed(
            f"the document {document_id!r} has the etag {present}, not {self.if_match}",
            hint="read the document again and repeat the change on what it is now",
        )


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission: `outcome` is `pending` while `job` works on it."""

    document: Document
    outcome: str
    job: Job | None = None
    duplicate_of: tuple[str, ...] = ()


def register(
    store: CollectionStore, document_id: str, payload: JobPayload, *, most_documents: int | None = None
) -> int:
    """Make a document known that a job will work on, and return its registration."""
    return store.register_document(
        document_id,
        title=payload.title or "",
        metadata=payload.metadata,
        media_type=payload.media_type or "application/octet-stream",
        filename=payload.filename,
        most_documents=most_documents,
    )


@contextmanager
def unless_refused(store: CollectionStore, document_id: str, register_it: Callable[[], int]) -> Iterator[None]:
    """Register a document before its job is queued; where that is refused, leave it as it was."""
    before = store.document(document_id)
    registration = register_it()
    try:
        yield
    except FootnoteError:
        if before is None:
            store.delete_documents([document_id])
        elif before.error is not None:
            store.register_document(
                document_id,
                title=before.title,
                metadata=before.metadata,
                media_type=before.media_type,
                filename=before.filename,
            )
            store.set_state(document_id, registration, "failed", before.error, before.extraction)
        raise


def chunking_of(collection: Collection, own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how a document is cut: as it says itself, else as its collection says."""
    return dict(own if own is not None else collection.settings.get("chunking") or completed_chunking({}))


def chunking_options(collection: Collection, own: Mapping[str, Any] | None = None) -> ChunkingOptions:
    """Return how a document of this collection is cut."""
    return ChunkingOptions(**chunking_of(collection, own))


def normalisation_options(collection: Collection) -> NormalisationOptions:
    """Return what this collection cleans its texts of."""
    return NormalisationOptions(**collection.settings.get("normalisation", {}))


def context_options(collection: Collection, settings: Settings) -> ContextOptions:
    """Return who says where a chunk stands in this collection."""
    written = settings.contextualizer_tokens if collection.contextualizer == "llm" else 0
    return ContextOptions(collection.contextualizer, written)


def settings_hash(collection: Collection, submission: Submission) -> str:
    """Return a hash of everything but the bytes that decides what the pipeline makes of them."""
    return _hash(
        {
            "pipeline": PIPELINE_VERSION,
            "chunking": chunking_of(collection, submission.chunking),
            "normalisation": asdict(normalisation_options(collection)),
            "indexing": collection.indexing,
            "contextualizer": collection.contextualizer,
            "media_type": submission.media_type,
            "filename": submission.filename,
            "title": submission.title,
            **_language_of(collection, submission),
        }
    )


def _language_of(collection: Collection, submission: Submission) -> dict[str, str]:
    """Return the language that is chosen, if any: one that the text tells follows from the bytes."""
    given = submission.metadata.get("language")
    if isinstance(given, str) and is_language(given):
        return {"language": given}
    return {} if collection.language == "auto" else {"language": collection.language}


def is_made_by(stored: str | None, settings: str, *, has_language_model: bool) -> bool:
    """Return whether a version's stored hash is that of the settings, with nothing missing that could be made now."""
    return stored == settings or (stored == settings + INCOMPLETE and not has_language_model)


def etag_of(content_hash: str, settings: str, metadata: Metadata, expires_at: datetime | None) -> str:
    """Return a strong entity tag: equal for equal bytes, metadata and settings, in any collection."""
    state = {
        "content": content_hash,
        "settings": settings,
        "metadata": metadata,
        "expires_at": expires_at.isoformat() if expires_at else None,
    }
    return f'"sha256-{_hash(state)[:40]}"'


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396): `null` removes a member."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            below = merged.get(name)
            merged[name] = merge_patch(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def _hash(value: Mapping[str, Any]) -> str:
    encoded = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(encoded.encode("ascii")).hexdigest()
