"""Where a collection's documents come from: URLs that are fetched again."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import accepted, keyed
from app.api.dependencies import Access, IngestAccess
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, reply
from app.api.routes.fetching import fetched
from app.api.schemas.fetching import FetchBody
from app.api.schemas.jobs import JobReply
from app.api.schemas.problem import Problem
from app.api.schemas.sources import SourceList, SourceReply, SourceResult, SourceResults, SourcesBody
from app.api.strict_route import StrictRoute
from app.api.visibility import visible_ids
from app.api.waiting import PreferredWait, applied, finished
from app.catalog.job import Job
from app.catalog.sources import Source
from app.errors import FieldError, FootnoteError, InvalidRequest, NotFound
from app.ingestion.refresh import fetcher_of, queue_refresh

router = APIRouter(prefix="/v1/collections/{collection}/sources", route_class=StrictRoute, tags=["sources"])

SourceId = Annotated[str, Path(description="The source's id", examples=["src_9c1f"])]


@router.post(
    "",
    operation_id="sources.create",
    summary="Make documents of a list of URLs",
    response_model=SourceResults,
    responses=keyed(403, 404, 409, 413, 415, 507) | accepted(SourceResults, "Some are being fetched"),
)
async def create_sources(access: IngestAccess, body: SourcesBody, idempotency: IdempotencyKey) -> Response:
    """Fetch each URL by a job of its own; one that is wrong does not fail the others."""
    fetcher_of(access.services.ingestion)
    most = access.services.settings.max_batch_documents
    if len(body.sources) > most:
        detail = f"{len(body.sources)} sources are above the maximum of {most} (FOOTNOTE_MAX_BATCH_DOCUMENTS)"
        raise InvalidRequest(detail, errors=[FieldError("/sources", "too_long", detail)])

    def create() -> Response:
        results = [_result(access, index, wanted) for index, wanted in enumerate(body.sources)]
        is_pending = any(result.job_id for result in results)
        return reply(SourceResults(results=results), 202 if is_pending else 200)

    return await answered_once(idempotency, lambda: run_in_threadpool(create), access.collection.id)


@router.get("", operation_id="sources.list", summary="List sources, newest first", responses=keyed(403, 404))
def list_sources(access: IngestAccess, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> SourceList:
    """Answer the sources of the documents that the key sees."""
    page, next_cursor = access.services.ingestion.sources.list(access.collection.id, limit=limit, cursor=cursor)
    seen = visible_ids(access, [source.document_id for source in page])
    data = [SourceReply.model_validate(source) for source in page if source.document_id in seen]
    return SourceList(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/{source_id}", operation_id="sources.get", summary="Look at a source", responses=keyed(403, 404))
def get_source(access: IngestAccess, source_id: SourceId) -> SourceReply:
    """Answer the source as it is now."""
    return SourceReply.model_validate(_visible(access, source_id))


@router.delete(
    "/{source_id}",
    operation_id="sources.delete",
    summary="Stop fetching a source",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404, 507),
)
def delete_source(
    access: IngestAccess,
    source_id: SourceId,
    delete_document: Annotated[bool, Query(description="Delete its document too; otherwise it stays")] = False,
) -> Response:
    """Forget the source; its document stays as it is unless it is deleted with it."""
    source = _visible(access, source_id)
    access.services.ingestion.sources.delete(access.collection.id, source.id)
    if delete_document:
        access.services.ingestion.delete(access.collection, [source.document_id])
    return Response(status_code=204)


@router.post(
    "/{source_id}/refresh",
    operation_id="sources.refresh",
    summary="Fetch a source now",
    response_model=JobReply,
    responses=keyed(403, 404, 409, 507) | accepted(JobReply, "The URL is being fetched"),
)
async def refresh_source(
    access: IngestAccess, source_id: SourceId, wait: PreferredWait, idempotency: IdempotencyKey
) -> Response:
    """Queue the fetching, or answer the job that is at it; what has not changed is not sent and not embedded again."""

    def queue() -> Job:
        source = _visible(access, source_id)
        return queue_refresh(access.services.ingestion, access.collection, source)

    async def refresh() -> Response:
        job = await finished(access.services, await run_in_threadpool(queue), wait)
        headers = {"Location": f"/v1/jobs/{job.id}", **applied(wait)}
        return reply(JobReply.model_validate(job), 200 if job.is_finished else 202, headers)

    return await answered_once(idempotency, refresh, access.collection.id)


def _visible(access: Access, source_id: str) -> Source:
    """Return the source, or raise the `NotFound` that is the same for one whose document the key does not see."""
    source = access.services.ingestion.sources.get(access.collection.id, source_id)
    if source is None or source.document_id not in visible_ids(access, [source.document_id]):
        raise NotFound(f"there is no source {source_id[:100]!r} in this collection")
    return source


def _result(access: Access, index: int, wanted: FetchBody) -> SourceResult:
    try:
        submitted = fetched(access, wanted, f"/sources/{index}")
    except FootnoteError as error:
        problem = Problem.model_validate(error.problem())
        return SourceResult(index=index, url=wanted.url, status=problem.status, source=None, job_id=None, error=problem)
    source = access.services.ingestion.sources.of_document(access.collection.id, submitted.document.id)
    return SourceResult(
        index=index,
        url=wanted.url,
        status=202,
        source=None if source is None else SourceReply.model_validate(source),
        job_id=None if submitted.job is None else submitted.job.id,
        error=None,
    )
