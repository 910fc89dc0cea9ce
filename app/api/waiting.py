"""`Prefer: wait=N`: answer with what a job made if it ends in time, without holding a thread meanwhile."""

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Header, Request
from starlette.concurrency import run_in_threadpool

from app.bootstrap import Services
from app.catalog.job import Job
from app.errors import FieldError, InvalidRequest, NotFound

LONGEST_WAIT = 60
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.1

_WAIT = re.compile(r'wait\s*=\s*"?([^"]*)"?', re.IGNORECASE)


async def preferred_wait(
    request: Request,
    prefer: Annotated[  # noqa: ARG001 - declares the header; several lines of it are read from the request
        str | None,
        Header(
            alias="Prefer", description="`wait=N`: seconds, at most 60, to wait for the result", examples=["wait=10"]
        ),
    ] = None,
) -> float | None:
    """Return the seconds the caller wants to wait, or `None`; other preferences are ignored (RFC 7240)."""
    for preference in ",".join(request.headers.getlist("prefer")).split(","):
        wish = _WAIT.fullmatch(preference.split(";")[0].strip())
        if wish is None:
            continue
        digits = wish.group(1).strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) <= LONGEST_WAIT):
            detail = f"wait must be a whole number of seconds from 0 to {LONGEST_WAIT}, not {digits[:20]!r}"
            raise InvalidRequest(detail, errors=[FieldError("header:Prefer", "out_of_range", detail)])
        return float(digits)
    return None


PreferredWait = Annotated[float | None, Depends(preferred_wait)]


def applied(wait: float | None) -> dict[str, str]:
    """Return the header that says the wish was heard."""
    return {} if wait is None else {"Preference-Applied": f"wait={wait:.0f}"}


async def finished(services: Services, job: Job, wait: float | None) -> Job:
    """Return the job as soon as it has ended, or as it is after `wait` seconds."""
    return (await all_finished(services, [job], wait))[0]


async def all_finished(services: Services, jobs: Sequence[Job], wait: float | None) -> list[Job]:
    """Return the jobs once all have ended, or as they are after `wait` seconds altogether."""
    if not wait:
        return list(jobs)
    deadline = time.monotonic() + wait
    return [await _ended(services, job.id, deadline) for job in jobs]


async def _ended(services: Services, job_id: str, deadline: float) -> Job:
    pause = FIRST_PAUSE_SECONDS
    while True:
        job = await run_in_threadpool(services.jobs.get, job_id)
        if job is None:
            raise NotFound("the job went with its collection")
        left = deadline - time.monotonic()
        if job.is_finished or left <= 0:
            return job
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
