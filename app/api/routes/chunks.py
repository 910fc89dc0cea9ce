"""Look at what a way of chunking makes of a text before anything is stored."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from fastapi import APIRouter

from app.api.declared import keyed
from app.api.dependencies import Access, CurrentPrincipal, CurrentServices, check_role, visible_collection
from app.api.replies import current_request_id, notices, rounded
from app.api.schemas.chunking import (
    ChunkingSettings,
    KindSummary,
    PreviewChunk,
    PreviewReply,
    PreviewRequest,
    SizeSummary,
)
from app.api.schemas.documents import MEDIA_TYPES
from app.api.strict_route import StrictRoute
from app.api.visibility import existing_document
from app.catalog.principal import Role
from app.domain import Chunk, ChunkingOptions, Document
from app.errors import EmptyDocument, FieldError, InvalidRequest
from app.ingestion.chunkers.options import check_chunking, completed_chunking
from app.ingestion.preview import Preview, Sizes, preview_document, preview_text
from app.ingestion.submission import chunking_of
from app.telemetry import StageTimer

LONGEST_TEXT = 1_000_000
LONGEST_SHOWN = 2_000

router = APIRouter(prefix="/v1/chunk", route_class=StrictRoute, tags=["chunks"])


@router.post(
    "/preview",
    operation_id="chunks.preview",
    summary="Show how a text or a document would be cut",
    responses=keyed(404, 409, 413, 415, 502),
)
def preview_chunks(services: CurrentServices, principal: CurrentPrincipal, body: PreviewRequest) -> PreviewReply:
    """Answer counts of all chunks and the first of them; nothing is stored.

    Any key may preview a text; with a collection, whose model and settings then apply, it must be a key to that.
    """
    timer = StageTimer()
    access, document = None, None
    if body.collection is not None:
        access = Access(services, principal, visible_collection(services, principal, body.collection))
        check_role(principal, Role.SEARCH)
    if access is not None and body.document_id is not None:
        document = existing_document(access, body.document_id)
    embedder = access.embedder if access else services.embedders.get(services.embedders.default_model)
    chunking = _chunking(access, document, body.chunking)
    options = ChunkingOptions(**chunking)
    check_chunking(options, embedder.window_tokens)
    if access is not None and document is not None:
        found = preview_document(services.ingestion, access.collection, document, options, embedder)
    else:
        found = preview_text(
            services.ingestion,
            _checked_text(body.text or ""),
            MEDIA_TYPES[body.format or "text"],
            title=body.title,
            collection=access.collection if access else None,
            chunking=options,
            embedder=embedder,
        )
    stages = found.prepared.timings_ms | {"total": timer.milliseconds()["total"]}
    return _reply(found, chunking, body.limit, stages)


def _chunking(access: Access | None, document: Document | None, given: ChunkingSettings | None) -> dict[str, Any]:
    if given is not None:
        return completed_chunking(given.given())
    own = None if document is None else document.chunking
    return completed_chunking({}) if access is None else chunking_of(access.collection, own)


def _checked_text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        detail = f"has {len(text)} characters; a preview takes at most {LONGEST_TEXT}"
        raise InvalidRequest(f"the text {detail}", errors=[FieldError("/text", "too_long", detail)])
    if not text.strip():
        raise EmptyDocument("the text holds nothing but white space")
    return text


def _reply(found: Preview, chunking: dict[str, Any], limit: int, timings_ms: dict[str, float]) -> PreviewReply:
    parents, extraction = found.of_kind("parent"), found.prepared.extraction
    return PreviewReply(
        chunking={name: value for name, value in chunking.items() if name != "chunks"},
        characters=len(extraction.text),
        children=_summary(found.of_kind("child")),
        parents=_summary(parents) if parents else None,
        sentences_embedded=found.sentences_embedded,
        data=[_shown(chunk) for chunk in islice(found.prepared.chunks, limit)],
        has_more=len(found.prepared.chunks) > limit,
        warnings=notices(extraction.warnings),
        timings_ms=rounded(timings_ms),
        request_id=current_request_id(),
    )


def _summary(chunks: Sequence[Chunk]) -> KindSummary:
    return KindSummary(
        total=len(chunks),
        characters=SizeSummary.model_validate(Sizes.of([len(chunk.text) for chunk in chunks])),
        tokens=SizeSummary.model_validate(Sizes.of([chunk.token_count for chunk in chunks])),
    )


def _shown(chunk: Chunk) -> PreviewChunk:
    return PreviewChunk(
        ordinal=chunk.ordinal,
        kind=chunk.kind,
        parent=chunk.parent,
        start=chunk.start,
        end=chunk.end,
        text=chunk.text[:LONGEST_SHOWN],
        context=chunk.context[:LONGEST_SHOWN],
        characters=len(chunk.text),
        token_count=chunk.token_count,
        page_start=chunk.page_start,
        page_end=chunk.page_end,
        heading_path=list(chunk.heading_path),
    )
