"""Jobs: list, look, listen, cancel."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import keyed
from app.api.dependencies import (
    CurrentPrincipal,
    CurrentServices,
    check_role,
    visible_collection,
)
from app.api.event_stream import Event, EventStream, stream_of
from app.api.job_watch import JobWatch
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit
from app.api.schemas.jobs import JobList, JobReply
from app.api.strict_route import StrictRoute
from app.api.visibility import visible_job, visible_jobs, without_hidden_ids
from app.bootstrap import Services
from app.catalog.job import Job, JobState
from app.catalog.principal import Principal, Role

router = APIRouter(prefix="/v1/jobs", route_class=StrictRoute, tags=["jobs"])

JobId = Annotated[str, Path(description="The job's id", examples=["job_7f3a"])]


def job_in_path(services: CurrentServices, principal: CurrentPrincipal, job_id: JobId) -> Job:
    """Return the job of the path, if the key may see it."""
    return visible_job(services, principal, job_id)


VisibleJob = Annotated[Job, Depends(job_in_path)]
LastEventId = Annotated[
    int | None,
    Header(
        alias="Last-Event-ID", ge=0, description="`id` of the last event that was received; what came after is sent"
    ),
]
_FOLLOWED = stream_of("The job each time it changes, until it has ended", JobReply) | {
    204: {"description": "The job has ended and `Last-Event-ID` was its last event"}
}


@router.get("", operation_id="jobs.list", summary="List jobs, newest first", responses=keyed(403, 404))
def list_jobs(
    services: CurrentServices,
    principal: CurrentPrincipal,
    collection: Annotated[str | None, Query(description="Only of this collection")] = None,
    document_id: Annotated[str | None, Query(description="Only of this document")] = None,
    state: Annotated[JobState | None, Query(description="Only in this state")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JobList:
    """Answer the jobs of every collection that the key opens."""
    chosen = None if collection is None else visible_collection(services, principal, collection)
    check_role(principal, Role.INGEST)
    page, next_cursor = services.jobs.list(
        principal.collection_ids,
        collection_id=chosen.id if chosen else None,
        document_id=document_id,
        state=state,
        limit=limit,
        cursor=cursor,
    )
    data = [JobReply.model_validate(job) for job in visible_jobs(services, principal, page)]
    return JobList(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/{job_id}", operation_id="jobs.get", summary="Look at a job", responses=keyed(403, 404))
def get_job(job: VisibleJob) -> JobReply:
    """Answer the job as it is now."""
    return JobReply.model_validate(job)


@router.get(
    "/{job_id}/events",
    operation_id="jobs.events",
    summary="Follow a job",
    response_class=Response,
    responses=keyed(403, 404) | _FOLLOWED,
)
async def follow_job(
    request: Request,
    services: CurrentServices,
    principal: CurrentPrincipal,
    job: VisibleJob,
    last_event_id: LastEventId = None,
) -> Response:
    """Answer the job as an event named `job` now and after each change; its `id` is where a later request goes on."""
    if job.is_finished and last_event_id == job.changes:
        return Response(status_code=204)
    watch: JobWatch = request.app.state.job_watch
    events = _events(services, principal, watch.follow(job, last_event_id))
    return EventStream(events, services.settings.stream_heartbeat_seconds)


async def _events(
    services: Services, principal: Principal, states: AsyncGenerator[Job, None]
) -> AsyncGenerator[Event, None]:
    async with aclosing(states):
        async for state in states:
            seen = await run_in_threadpool(_seen, services, principal, state)
            if not seen:
                return
            yield Event(JobReply.model_validate(seen[0]), "job", str(state.changes))


def _seen(services: Services, principal: Principal, state: Job) -> list[Job]:
    """Return the job as the key sees it: the key may be revoked meanwhile, the document may have left its filter."""
    return visible_jobs(services, principal, [state]) if services.api_keys.holds(principal) else []


@router.delete("/{job_id}", operation_id="jobs.cancel", summary="Cancel a job", responses=keyed(403, 404))
def cancel_job(services: CurrentServices, principal: CurrentPrincipal, job: VisibleJob) -> JobReply:
    """End a job that waits, ask a running one to stop; a finished one stays as it is."""
    cancelled = services.jobs.cancel(job.id)
    return JobReply.model_validate(without_hidden_ids(services, principal, cancelled))
