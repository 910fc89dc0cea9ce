"""What a document holds: its text, its chunks, and the bytes it was made from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from app.api.declared import keyed
from app.api.dependencies import SearchAccess
from app.api.document_rules import DocumentId
from app.api.presenting import chunk_reply
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, after
from app.api.schemas.documents import ChunkList
from app.api.strict_route import StrictRoute
from app.api.visibility import existing_document
from app.domain import ChunkKind
from app.errors import FieldError, InvalidRequest, NotFound

BLOCK_BYTES = 256 * 1024
PLAIN_TEXT = "text/plain; charset=utf-8"

_Offset = Annotated[int | None, Query(ge=0, le=2**53, description="In code points")]

router = APIRouter(
    prefix="/v1/collections/{collection}/documents/{document_id}", route_class=StrictRoute, tags=["documents"]
)


@router.get(
    "/text",
    operation_id="documents.text",
    summary="Read a document's text, or a piece of it",
    response_class=Response,
    responses=keyed(404)
    | {200: {"description": "Exactly the text", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def read_text(access: SearchAccess, document_id: DocumentId, start: _Offset = None, end: _Offset = None) -> Response:
    """Answer `[start, end)` of the canonical text, which chunks, quotes and citations point into."""
    existing_document(access, document_id)
    if start is not None and end is not None and end < start:
        detail = f"end {end} must be at least start {start}"
        raise InvalidRequest(detail, errors=[FieldError("query:end", "out_of_range", detail)])
    with access.services.opened.get(access.collection.id) as opened:
        text = opened.store.text(document_id, start or 0, end)
    return Response(text.encode(), media_type=PLAIN_TEXT)


@router.get("/chunks", operation_id="documents.chunks", summary="List a document's chunks", responses=keyed(404))
def list_chunks(
    access: SearchAccess,
    document_id: DocumentId,
    kind: ChunkKind = "child",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> ChunkList:
    """Answer the chunks of the ready version by ordinal: what searches find, or the parents that it is read in."""
    existing_document(access, document_id)
    with access.services.opened.get(access.collection.id) as opened:
        chunks = opened.store.chunks(document_id, limit=limit + 1, after=after(cursor), kind=kind)
    page, has_more = chunks[:limit], len(chunks) > limit
    return ChunkList(
        data=[chunk_reply(chunk) for chunk in page],
        has_more=has_more,
        next_cursor=str(page[-1].ordinal) if has_more else None,
    )


@router.get(
    "/original",
    operation_id="documents.original",
    summary="Fetch the bytes that were sent",
    response_class=StreamingResponse,
    responses=keyed(404)
    | {
        200: {
            "description": "The file, with its own media type",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def fetch_original(access: SearchAccess, document_id: DocumentId) -> Response:
    """Answer the bytes of the ready version as an attachment."""
    document = existing_document(access, document_id)
    if document.content_hash is None:
        raise NotFound(f"the document {document_id!r} has no ready version yet", hint="wait for its job")
    path = access.services.ingestion.originals(access.collection.id).path(document.content_hash)
    return StreamingResponse(
        _blocks(path),
        headers={
            # Not by the framework, which would claim a charset.
            "Content-Type": document.media_type,
            "Content-Length": str(path.stat().st_size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(document.filename or document.id, safe='')}",
            "Content-Security-Policy": "sandbox",
        },
    )


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
