"""The queue: enqueue, claim, tell, finish, cancel and retry jobs. `claims.py` chooses which comes next."""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Update, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.catalog import claims
from app.catalog.database import Database
from app.catalog.job import Job, JobState
from app.catalog.job_list import BATCH, JobList, batches, queued_count
from app.catalog.tables import jobs
from app.errors import Conflict, NotFound, QueueFull
from app.stores.column_types import utc_now

QUEUE_FULL_RETRY_SECONDS = 5
POLL_SECONDS = 0.05


Announce = Callable[[Connection, Job], None]


class Jobs(JobList):
    """The jobs of all collections; thread-safe, and atomic between processes.

    `wake` is notified when this process queues a job or ends one; what other processes do is seen by asking again.
    `announce` is called with each job that has ended, in the same transaction, so that an end is told of if and only
    if it came.
    """

    def __init__(
        self,
        database: Database,
        *,
        max_queued: int,
        lease_seconds: float,
        max_attempts: int = 3,
        announce: Announce | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(database)
        self._announce = announce
        self._max_queued = max_queued
        self._lease = timedelta(seconds=lease_seconds)
        self._max_attempts = max_attempts
        self._clock = clock
        self._finished = threading.Condition()
        self.wake = threading.Condition()

    # --- ask for work ---

    def enqueue(
        self,
        kind: str,
        *,
        collection_id: str,
        collection: str,
        document_id: str | None,
        payload: dict[str, Any],
        beside: Callable[[Connection], object] = lambda _: None,
    ) -> Job:
        """Queue a job, and write in its transaction what belongs to it: both or neither.

        Raises `QueueFull` when too many wait, and `NotFound` when the collection is gone.
        """
        try:
            with self._database.write() as connection:
                self._refuse_if_full(connection)
                beside(connection)
                now = self._clock()
                values = {
                    "id": f"job_{secrets.token_hex(12)}",
                    "kind": kind,
                    "collection_id": collection_id,
                    "collection": collection,
                    "document_id": document_id or "",
                    "payload": {name: value for name, value in payload.items() if name != "password"},
                    "password": payload.get("password"),
                    "created_at": now,
                    **_fresh(now),
                    "changes": 0,
                }
                row = connection.execute(insert(jobs).returning(jobs), values).mappings().one()
        except IntegrityError as error:
            raise NotFound(f"the collection {collection!r} was deleted meanwhile") from error
        self._notify()
        return Job.of(row)

    def cancel(self, job_id: str) -> Job:
        """End a job that waits, ask a running one to stop, leave a finished one; raises `NotFound`."""
        self._cancel(jobs.c.id == job_id)
        return self._existing(job_id)

    def cancel_for_document(self, collection_id: str, document_ids: Sequence[str]) -> int:
        """Cancel every unfinished job of these documents; return how many there were."""
        of_collection = jobs.c.collection_id == collection_id
        return self._cancel(*(of_collection & jobs.c.document_id.in_(batch) for batch in batches(document_ids)))

    def retry(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again, as if new; raises `NotFound`, `Conflict` and `QueueFull`."""
        with self._database.write() as connection:
            self._refuse_if_full(connection)
            retried = connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, jobs.c.state.in_([JobState.FAILED, JobState.CANCELLED]))
                .values(_fresh(self._clock()))
            )
            was_retried = bool(retried.rowcount)
        job = self._existing(job_id)
        if not was_retried:
            raise Conflict(f"the job {job_id} is {job.state}", hint="only a failed or cancelled job can be retried")
        self._notify()
        return job

    # --- work ---

    def claim(self, owner: str) -> Job | None:
        """Take the next job for the owner, or return `None`; its payload then has the `password`.

        A job whose `exhausted` is true must be failed with `claims.attempts_exhausted`, not tried.
        """
        with self._database.write() as connection:
            now = self._clock()
            silent = claims.jobs_of_silent_owners(connection, owner, now)
            self._tell(connection, claims.take_back(connection, silent, now, self._max_attempts))
            sequence = claims.next_job(connection, owner, now)
            if sequence is None:
                return None
            row = claims.start(connection, sequence, owner, now, now + self._lease, self._max_attempts)
        if row is None:
            return None
        payload = {**row["payload"], "password": row["password"]}
        return replace(Job.of(row), payload=payload, exhausted=row["crashes"] >= self._max_attempts)

    def heartbeat(self, owner: str) -> set[str]:
        """Renew the leases of all the owner's jobs; return the ids of those that were asked to stop."""
        renewed = (
            update(jobs)
            .where(jobs.c.state == JobState.RUNNING, jobs.c.owner == owner)
            .values(lease_until=self._clock() + self._lease)
            .returning(jobs.c.id, jobs.c.cancel_requested)
        )
        with self._database.write() as connection:
            return {job_id for job_id, cancel_requested in connection.execute(renewed) if cancel_requested}

    def progress(
        self,
        job_id: str,
        owner: str,
        *,
        stage: str,
        done: int = 0,
        total: int | None = None,
        unit: str | None = None,
        stages: Sequence[dict[str, Any]] | None = None,
    ) -> bool:
        """Tell how far a job is; return whether it is still the owner's and was not asked to stop."""
        told: dict[str, Any] = {"stage": stage, "done": done, "total": total, "unit": unit, **claims.changed()}
        if stages is not None:
            told["stages"] = list(stages)
        change = update(jobs).where(claims.owned(job_id, owner)).values(told).returning(jobs.c.cancel_requested)
        with self._database.write() as connection:
            return connection.execute(change).scalar_one_or_none() is False

    def amend(self, job_id: str, owner: str, changes: dict[str, Any]) -> bool:
        """Add members to the payload of the owner's job; return `False` if it is not the owner's any more."""
        payload = select(jobs.c.payload).where(claims.owned(job_id, owner))
        with self._database.write() as connection:
            before = connection.execute(payload).scalar_one_or_none()
            if before is not None:
                amended = update(jobs).where(jobs.c.id == job_id).values(payload={**before, **changes})
                connection.execute(amended)
            return before is not None

    def finish(
        self,
        job_id: str,
        owner: str,
        state: str,
        *,
        error: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
        stages: Sequence[dict[str, Any]] | None = None,
    ) -> bool:
        """End a job and wipe its password; return `False`, with nothing done, if it is not the owner's any more."""
        values = claims.ended(JobState(state), self._clock(), error) | {"result": result}
        if stages is not None:
            values["stages"] = list(stages)
        with self._database.write() as connection:
            ended = self._end(connection, update(jobs).where(claims.owned(job_id, owner)).values(values))
        self._notify()
        return bool(ended)

    def requeue(self, job_id: str, owner: str, *, delay_seconds: float = 0) -> bool:
        """Put a job back for another attempt, not before the delay; return `False` if it is not the owner's any more.

        One that was asked to stop is cancelled instead.
        """
        now = self._clock()
        owned = claims.owned(job_id, owner)
        back = update(jobs).where(owned).values(claims.queued(now + timedelta(seconds=delay_seconds)))
        stopped = update(jobs).where(owned, jobs.c.cancel_requested).values(claims.ended(JobState.CANCELLED, now))
        with self._database.write() as connection:
            changed = self._end(connection, stopped) or connection.execute(back).rowcount
        self._notify()
        return bool(changed)

    def release_owners(self, dead: Callable[[str], bool]) -> int:
        """Take back at once the jobs of owners that are dead; return how many there were."""
        with self._database.write() as connection:
            lost = claims.jobs_of_dead_owners(connection, dead)
            self._tell(connection, claims.take_back(connection, lost, self._clock(), self._max_attempts))
        self._notify()
        return len(lost)

    # --- end ---

    def wait(self, job_id: str, timeout: float) -> Job:
        """Return the job as soon as it is finished, or as it is after `timeout` seconds; raises `NotFound`."""
        deadline = time.monotonic() + timeout
        while True:
            job = self._existing(job_id)
            remaining = deadline - time.monotonic()
            if job.is_finished or remaining <= 0:
                return job
            with self._finished:
                self._finished.wait(min(POLL_SECONDS, remaining))

    def remove_finished(self, before: datetime) -> int:
        """Forget jobs that finished before that time, some at once so that nobody waits long; return how many."""
        old = select(jobs.c.sequence).where(jobs.c.finished_at < before).limit(BATCH)
        removed = 0
        while True:
            with self._database.write() as connection:
                batch = connection.execute(delete(jobs).where(jobs.c.sequence.in_(old))).rowcount
            removed += batch
            if batch < BATCH:
                return removed

    # --- inside ---

    def _existing(self, job_id: str) -> Job:
        job = self.get(job_id)
        if job is None:
            raise NotFound(f"there is no job {job_id!r}")
        return job

    def _cancel(self, *conditions: ColumnElement[bool]) -> int:
        waiting = update(jobs).values(claims.ended(JobState.CANCELLED, self._clock()))
        running = update(jobs).values(cancel_requested=True)
        cancelled = 0
        with self._database.write() as connection:
            for condition in conditions:
                cancelled += self._end(connection, waiting.where(condition, jobs.c.state == JobState.QUEUED))
                cancelled += connection.execute(running.where(condition, jobs.c.state == JobState.RUNNING)).rowcount
        self._notify()
        return cancelled

    def _end(self, connection: Connection, change: Update) -> int:
        """Make a change that ends jobs, tell of each, and return how many there were."""
        return self._tell(connection, connection.execute(change.returning(jobs)).mappings().all())

    def _tell(self, connection: Connection, ended: Sequence[RowMapping]) -> int:
        if self._announce is not None:
            for row in ended:
                self._announce(connection, Job.of(row))
        return len(ended)

    def _refuse_if_full(self, connection: Connection) -> None:
        if queued_count(connection) >= self._max_queued:
            raise QueueFull(
                f"{self._max_queued} jobs wait already, as FOOTNOTE_MAX_QUEUED_JOBS allows",
                hint="send the request again later",
                retry_after=QUEUE_FULL_RETRY_SECONDS,
            )

    def _notify(self) -> None:
        """Wake who waits for a job, and who may now begin the next one of the same document."""
        for condition in (self._finished, self.wake):
            with condition:
                condition.notify_all()


def _fresh(now: datetime) -> dict[str, Any]:
    """Return what a job is like that nobody has begun."""
    return {
        "stage": None,
        "done": 0,
        "total": None,
        "unit": None,
        "attempt": 0,
        "crashes": 0,
        "stages": [],
        "error": None,
        "result": None,
        "cancel_requested": False,
        "started_at": None,
        "finished_at": None,
        **claims.queued(now),
    }
