"""Tell listeners how jobs change, whichever process changes them, by one look at the catalog for all of them."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from app.catalog.job import Job
from app.catalog.jobs import Jobs

POLL_SECONDS = 0.2
"""How late a change may be heard of; a worker tells of progress four times a second."""

PAUSE_SECONDS = 1.0
"""Pause before a catalog that could not be read is asked again."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Listener:
    """Who waits for a job that has changed `seen` times; `job` is its newest state, `None` once it is gone."""

    seen: int
    job: Job | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, job: Job | None) -> None:
        self.job = job
        self.seen = self.seen if job is None else job.changes
        self.news.set()


class JobWatch:
    """Look at the jobs that somebody listens to, as long as somebody does. For one event loop."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._listeners: dict[str, set[_Listener]] = {}
        self._poller: asyncio.Task[None] | None = None

    async def follow(self, job: Job, after: int | None = None) -> AsyncGenerator[Job, None]:
        """Yield the job as it is, unless that is its change `after`, and as it becomes, until it has ended or is gone.

        Who is slow misses states in between, never the last one.
        """
        if job.changes != after:
            yield job
        if job.is_finished:
            return
        listener = _Listener(job.changes)
        self._listeners.setdefault(job.id, set()).add(listener)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            while True:
                await listener.news.wait()
                listener.news.clear()
                newest = listener.job
                if newest is None:
                    return
                yield newest
                if newest.is_finished:
                    return
        finally:
            self._leave(job.id, listener)

    def close(self) -> None:
        """Look no more."""
        if self._poller is not None:
            self._poller.cancel()

    def _leave(self, job_id: str, listener: _Listener) -> None:
        listeners = self._listeners[job_id]
        listeners.discard(listener)
        if not listeners:
            del self._listeners[job_id]

    async def _poll(self) -> None:
        while self._listeners:
            pause = POLL_SECONDS
            try:
                await self._look()
            except Exception:
                log.exception("jobs that are listened to cannot be read; the next look tries again")
                pause = PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        asked = list(self._listeners)
        numbers = await run_in_threadpool(self._jobs.changes, asked)
        changed = [
            job_id
            for job_id, changes in numbers.items()
            if any(listener.seen != changes for listener in self._listeners.get(job_id, ()))
        ]
        found = await run_in_threadpool(self._jobs.several, changed) if changed else []
        for job in found:
            for listener in self._listeners.get(job.id, ()):
                if listener.seen != job.changes:
                    listener.tell(job)
        for job_id in set(asked) - numbers.keys():
            for listener in self._listeners.get(job_id, ()):
                listener.tell(None)
