"""Documents as they stand: list, look, change, delete, retry, and their history."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import accepted, keyed
from app.api.dependencies import IngestAccess, SearchAccess
from app.api.document_rules import DocumentId, check_metadata
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.json_body import parse_json
from app.api.preconditions import ChangePrecondition
from app.api.presenting import document_reply, document_summary
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, after, reply
from app.api.schemas.documents import (
    DeleteByFilter,
    Deleted,
    DocumentList,
    DocumentPatch,
    DocumentReply,
    RestoreVersion,
    SubmittedReply,
    VersionList,
    VersionReply,
)
from app.api.schemas.jobs import JobReply
from app.api.searching import forced_filter
from app.api.strict_route import StrictRoute
from app.api.submitting import answer_one
from app.api.visibility import existing_document, find_document, narrowed, narrowed_filter
from app.api.waiting import PreferredWait
from app.domain import DocumentState
from app.ingestion.ingest import UNSET
from app.ingestion.submission import Submitted, merge_patch
from app.stores.filters import parse_filter
from app.telemetry import StageTimer

router = APIRouter(prefix="/v1/collections/{collection}/documents", route_class=StrictRoute, tags=["documents"])

FilterText = Annotated[
    str | None,
    Query(description="A filter as JSON", examples=['{"field":"team","op":"eq","value":"hr"}']),
]


@router.get("", operation_id="documents.list", summary="List documents", responses=keyed(404))
def list_documents(
    access: SearchAccess,
    filter: FilterText = None,  # noqa: A002 - the contract's word
    state: Annotated[DocumentState | None, Query(description="Only in this state")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> DocumentList:
    """Answer the documents that pass the filter, in the order they came."""
    asked = None
    if filter is not None:
        asked = parse_filter(parse_json(filter.encode(), "query:filter"), "query:filter")
    with access.services.opened.get(access.collection.id) as opened:
        wanted = opened.store.without_ended(narrowed(access, asked), access.collection.max_age)
        page = opened.store.list_documents(wanted, limit=limit, cursor=cursor, states=[state] if state else [])
    return DocumentList(
        data=[document_summary(document, access.collection.name) for document in page.data],
        has_more=page.next_cursor is not None,
        next_cursor=page.next_cursor,
    )


@router.get("/{document_id}", operation_id="documents.get", summary="Look at a document", responses=keyed(404))
def get_document(access: SearchAccess, document_id: DocumentId, response: Response) -> DocumentReply:
    """Answer the document as it stands, without its text."""
    timer = StageTimer()
    document = existing_document(access, document_id)
    if document.etag:
        response.headers["ETag"] = document.etag
    return document_reply(document, access.collection.name, timer.milliseconds())


@router.patch(
    "/{document_id}",
    operation_id="documents.update",
    summary="Change a document's title, metadata or expiry",
    response_model=SubmittedReply,
    responses=keyed(403, 404, 409, 412, 413, 415, 502, 507) | accepted(JobReply, "A new title is on its way"),
)
async def patch_document(
    request: Request,
    access: IngestAccess,
    document_id: DocumentId,
    body: DocumentPatch,
    precondition: ChangePrecondition,
    wait: PreferredWait,
) -> Response:
    """Change what the body names. Metadata and expiry change at once; a title is part of what is indexed."""
    given = body.model_fields_set

    def change() -> Submitted:
        existing = existing_document(access, document_id)
        check_metadata(merge_patch(existing.metadata, body.metadata), access.services.settings)
        return access.services.ingestion.update(
            access.collection,
            document_id,
            title=body.title if "title" in given else UNSET,
            metadata=body.metadata if "metadata" in given else UNSET,
            expires_at=body.expires_at if "expires_at" in given else UNSET,
            precondition=precondition,
        )

    return await answer_one(access, request.scope, change, wait)


@router.delete(
    "/{document_id}",
    operation_id="documents.delete",
    summary="Delete a document",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404, 412, 507),
)
def delete_document(access: IngestAccess, document_id: DocumentId, precondition: ChangePrecondition) -> Response:
    """Delete the document with all that belongs to it; one that is gone already is no error."""
    if find_document(access, document_id, with_ended=True) is None:
        precondition.check(document_id, None)
    else:
        access.services.ingestion.delete(access.collection, [document_id], precondition)
    return Response(status_code=204)


@router.post(
    "/delete",
    operation_id="documents.delete_by_filter",
    summary="Delete every document that a filter lets through",
    response_model=Deleted,
    responses=keyed(403, 404, 409, 413, 415, 507),
)
async def delete_by_filter(access: IngestAccess, body: DeleteByFilter, idempotency: IdempotencyKey) -> Response:
    """Answer how many documents were deleted."""

    def delete() -> Response:
        wanted = narrowed_filter(access, parse_filter(body.filter, "/filter"))
        return reply(Deleted(deleted=access.services.ingestion.delete_matching(access.collection, wanted)))

    return await answered_once(idempotency, lambda: run_in_threadpool(delete), access.collection.id)


@router.post(
    "/{document_id}/retry",
    operation_id="documents.retry",
    summary="Try a failed document again",
    response_model=SubmittedReply,
    responses=keyed(403, 404, 409, 502, 507) | accepted(JobReply, "The document is in work again"),
)
async def retry_document(
    request: Request, access: IngestAccess, document_id: DocumentId, wait: PreferredWait, idempotency: IdempotencyKey
) -> Response:
    """Put the document's last failed or cancelled job back into the queue."""

    def retry() -> Submitted:
        document = existing_document(access, document_id)
        job = access.services.ingestion.retry(access.collection, document_id, forced_filter(access))
        return Submitted(document, "pending", job)

    return await answered_once(
        idempotency, lambda: answer_one(access, request.scope, retry, wait), access.collection.id
    )


@router.post(
    "/{document_id}/restore",
    operation_id="documents.restore",
    summary="Bring an earlier version back",
    response_model=SubmittedReply,
    responses=keyed(403, 404, 409, 412, 413, 415, 502, 507) | accepted(JobReply, "The version is on its way back"),
)
async def restore_document(
    request: Request,
    access: IngestAccess,
    document_id: DocumentId,
    body: RestoreVersion,
    precondition: ChangePrecondition,
    wait: PreferredWait,
    idempotency: IdempotencyKey,
) -> Response:
    """Make an earlier version the newest one; the present one answers until then, and stays in the history."""

    def restore() -> Submitted:
        existing_document(access, document_id)
        return access.services.ingestion.restore(
            access.collection, document_id, body.version, precondition, forced_filter(access)
        )

    return await answered_once(
        idempotency, lambda: answer_one(access, request.scope, restore, wait), access.collection.id
    )


@router.get(
    "/{document_id}/versions",
    operation_id="documents.versions",
    summary="List a document's versions, newest first",
    responses=keyed(404),
)
def list_versions(
    access: SearchAccess, document_id: DocumentId, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> VersionList:
    """Answer what the document was, as far as the key would have seen it; only the current version is searched."""
    existing_document(access, document_id)
    with access.services.opened.get(access.collection.id) as opened:
        versions = opened.store.versions(
            document_id, limit=limit + 1, before=after(cursor), scope_filter=forced_filter(access)
        )
    page, has_more = versions[:limit], len(versions) > limit
    return VersionList(
        data=[VersionReply.model_validate(version) for version in page],
        has_more=has_more,
        next_cursor=str(page[-1].version) if has_more else None,
    )
