"""Answer an operation that is a job on a whole collection."""

from typing import Any

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from app.api.dependencies import Access
from app.api.idempotency import Once, answered_once
from app.api.replies import reply
from app.api.schemas.jobs import JobReply
from app.api.waiting import applied, finished


async def queued(
    access: Access, kind: str, payload: dict[str, Any] | None, wait: float | None, idempotency: Once
) -> Response:
    """Queue the job once for each idempotency key, and answer 200 with its end or 202 with where to look."""

    async def queue() -> Response:
        waiting = await run_in_threadpool(access.services.ingestion.queue, access.collection, kind, payload)
        job = await finished(access.services, waiting, wait)
        location = {"Location": f"/v1/jobs/{job.id}", **applied(wait)}
        return reply(JobReply.model_validate(job), 200 if job.is_finished else 202, location)

    return await answered_once(idempotency, queue, access.collection.id)
