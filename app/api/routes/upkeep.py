"""Look after a collection: verify, rebuild, compact, deduplicate, reembed; one such job at a time runs on each."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import accepted, keyed
from app.api.dependencies import OwnerAccess
from app.api.idempotency import IdempotencyKey
from app.api.problems import raw_problem_response
from app.api.queueing import queued
from app.api.replies import reply
from app.api.schemas.jobs import JobReply
from app.api.schemas.strict import unknown_name
from app.api.schemas.upkeep import DeduplicateBody, ReembedBody, Verification
from app.api.strict_route import StrictRoute
from app.api.waiting import PreferredWait, applied, finished
from app.catalog.job import JobState
from app.errors import Cancelled, FieldError, UnknownField

VERIFY_WAIT_SECONDS = 5.0
"""How long `verify` waits for its job where the caller does not say."""

router = APIRouter(prefix="/v1/collections/{collection}", route_class=StrictRoute, tags=["collections"])


@router.post(
    "/verify",
    operation_id="collections.verify",
    summary="Compare store, index and originals",
    response_model=Verification,
    responses=keyed(403, 404, 409) | accepted(JobReply, "The comparison takes longer; its job's `result` will hold it"),
)
async def verify_collection(request: Request, access: OwnerAccess, wait: PreferredWait) -> Response:
    """Answer every difference, or the job that looks for them; a collection without one is clean.

    Without a `Prefer` header the answer is awaited for five seconds. Jobs on a whole collection run one after the
    other, so behind one of those it takes longer.
    """
    waiting = await run_in_threadpool(access.services.ingestion.queue, access.collection, "verify")
    job = await finished(access.services, waiting, VERIFY_WAIT_SECONDS if wait is None else wait)
    headers = {"Location": f"/v1/jobs/{job.id}", **applied(wait)}
    if not job.is_finished:
        return reply(JobReply.model_validate(job), 202, headers)
    if job.state is JobState.SUCCEEDED:
        return reply(Verification.model_validate(job.result), headers=headers)
    problem = job.error or Cancelled("the job was cancelled before it had looked at everything").problem()
    return raw_problem_response(problem, request.scope, headers)


@router.post(
    "/rebuild",
    operation_id="collections.rebuild",
    summary="Make the index anew from the store",
    response_model=JobReply,
    responses=keyed(403, 404, 409) | accepted(JobReply, "The rebuild is on its way"),
)
async def rebuild_collection(access: OwnerAccess, wait: PreferredWait, idempotency: IdempotencyKey) -> Response:
    """Queue the rebuild, which calls no model; searches keep answering meanwhile."""
    return await queued(access, "rebuild", None, wait, idempotency)


@router.post(
    "/compact",
    operation_id="collections.compact",
    summary="Leave nothing on the disk of what was deleted",
    response_model=JobReply,
    responses=keyed(403, 404, 409) | accepted(JobReply, "The compaction is on its way"),
)
async def compact_collection(access: OwnerAccess, wait: PreferredWait, idempotency: IdempotencyKey) -> Response:
    """Queue the compaction: deleted texts, vectors and files leave the disk, and their room is given back.

    What quotes documents goes too: finished jobs, remembered answers to idempotency keys, deliveries of webhooks, the
    query log. A file that arrived within the last minute is awaited.
    """
    return await queued(access, "compact", None, wait, idempotency)


@router.post(
    "/deduplicate",
    operation_id="collections.deduplicate",
    summary="Find chunks and documents that say the same",
    response_model=JobReply,
    responses=keyed(403, 404, 409, 413, 415) | accepted(JobReply, "The search for duplicates is on its way"),
)
async def deduplicate_collection(
    access: OwnerAccess, body: DeduplicateBody, wait: PreferredWait, idempotency: IdempotencyKey
) -> Response:
    """Queue the search for duplicates; the job's `result` counts them and lists the largest groups.

    `delete` removes documents that hold nothing but duplicates of chunks in older documents, which stay. A document
    that also says something of its own stays whole, its duplicate chunks included, since its chunks are its text.
    """
    return await queued(access, "deduplicate", body.model_dump(), wait, idempotency)


@router.post(
    "/reembed",
    operation_id="collections.reembed",
    summary="Move a collection to another embedding model",
    response_model=JobReply,
    responses=keyed(403, 404, 409, 413, 415, 502) | accepted(JobReply, "The move is on its way"),
)
async def reembed_collection(
    access: OwnerAccess, body: ReembedBody, wait: PreferredWait, idempotency: IdempotencyKey
) -> Response:
    """Queue the move: every text is embedded anew while searches use the vectors before, then all change at once.

    Documents keep their ids, etags and chunks. Documents that are written meanwhile move too. A job that is cut short
    goes on from its last batch, and so does a new one to the same model.
    """
    known = access.services.embedders.available()
    if body.model not in known:
        detail = f"the embedding model {unknown_name(body.model, known)}"
        raise UnknownField(detail, errors=[FieldError("/model", "unknown_field", detail)])
    return await queued(access, "reembed", body.model_dump(), wait, idempotency)
