"""Documents as they are answered."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.api.replies import current_request_id, notices, rounded
from app.api.schemas.documents import (
    ChunkCounts,
    ChunkReply,
    ChunkTotal,
    DocumentReply,
    DocumentSummary,
    SubmittedReply,
)
from app.api.schemas.problem import Problem
from app.domain import Document, Notice
from app.stores.port import FoundChunk


def document_summary(document: Document, collection_name: str) -> DocumentSummary:
    """Return one line of a list of documents."""
    return DocumentSummary(**_members(document, collection_name), chunks=ChunkTotal(total=document.chunk_count))


def document_reply(document: Document, collection_name: str, timings_ms: Mapping[str, float]) -> DocumentReply:
    """Return a document as an answer of its own."""
    return DocumentReply(
        **_members(document, collection_name),
        chunks=ChunkTotal(total=document.chunk_count),
        timings_ms=rounded(timings_ms),
        request_id=current_request_id(),
    )


def submitted_reply(
    document: Document,
    collection_name: str,
    *,
    outcome: str,
    embedded: int = 0,
    timings_ms: Mapping[str, float],
    duplicate_of: list[str],
) -> SubmittedReply:
    """Return a document and what a write made of it; `embedded` is how many chunks the model saw."""
    total = document.chunk_count
    members = _members(document, collection_name)
    if document.expires_at is not None and document.expires_at <= datetime.now(UTC):
        ended = document.expires_at.isoformat()
        detail = f"the document expired at {ended}; it is found no more, and deleted within minutes"
        members["warnings"] += notices([Notice("already_expired", detail, {})])
    return SubmittedReply(
        **members,
        outcome=outcome,
        chunks=ChunkCounts(total=total, embedded=embedded, reused=total - embedded),
        duplicate_of=duplicate_of,
        timings_ms=rounded(timings_ms),
        request_id=current_request_id(),
    )


def chunk_reply(chunk: FoundChunk) -> ChunkReply:
    """Return a chunk of one document."""
    return ChunkReply.model_validate(chunk)


def _members(document: Document, collection_name: str) -> dict[str, Any]:
    return {
        "id": document.id,
        "collection": collection_name,
        "state": document.state,
        "version": document.version,
        "etag": document.etag,
        "title": document.title,
        "metadata": dict(document.metadata),
        "media_type": document.media_type,
        "filename": document.filename,
        "characters": document.characters,
        "extraction": None if document.extraction is None else dict(document.extraction),
        "warnings": notices(document.warnings),
        "error": None if document.error is None else Problem.model_validate(document.error),
        "created_at": document.created_at,
        "updated_at": document.updated_at,
        "indexed_at": document.indexed_at,
        "content_hash": document.content_hash,
        "expires_at": document.expires_at,
        "chunking": _without_chunks(document.chunking),
    }


def _without_chunks(chunking: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if chunking is None else {name: value for name, value in chunking.items() if name != "chunks"}
