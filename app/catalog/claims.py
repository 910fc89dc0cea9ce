"""Choose the next job, and take back the jobs of processes that died. Every function works inside one transaction."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, exists, func, or_, select, update

from app.catalog.job import JobState
from app.catalog.tables import jobs
from app.errors import JobAttemptsExhausted

_earlier = jobs.alias("earlier")
_served = jobs.alias("served")
_running = jobs.c.state == JobState.RUNNING


def ended(state: JobState, now: datetime, error: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what changes in a job that ends; its password is wiped."""
    return {"state": state, "finished_at": now, "owner": None, "lease_until": None, "password": None, "error": error}


def queued(available_at: datetime) -> dict[str, Any]:
    """Return what changes in a job that goes back to the queue."""
    return {"state": JobState.QUEUED, "owner": None, "lease_until": None, "available_at": available_at}


def expired(owner: str, now: datetime) -> ColumnElement[bool]:
    """Return the condition of jobs whose owner is silent; a process that asks is never silent itself."""
    return _running & (jobs.c.lease_until <= now) & (jobs.c.owner != owner)


def owned(job_id: str, owner: str) -> ColumnElement[bool]:
    """Return the condition of a running job that is this owner's."""
    return _running & (jobs.c.id == job_id) & (jobs.c.owner == owner)


def anything_to_claim(connection: Connection, owner: str, now: datetime) -> bool:
    """Return whether it is worth taking the write lock to claim."""
    waiting = exists().where(jobs.c.state == JobState.QUEUED, jobs.c.available_at <= now)
    silent = exists().where(expired(owner, now))
    return bool(connection.execute(select(or_(waiting, silent))).scalar_one())


def take_back(connection: Connection, lost: ColumnElement[bool], now: datetime, maximum_attempts: int) -> int:
    """Put running jobs that a dead process lost back into the queue; return how many there were.

    A job that has lost `maximum_attempts` processes is claimed once more for an orderly failure; if that process
    dies as well, the job fails here.
    """
    columns = (jobs.c.sequence, jobs.c.crashes, jobs.c.cancel_requested, jobs.c.stage)
    rows = connection.execute(select(*columns).where(_running, lost)).all()
    for sequence, crashes, cancel_requested, stage in rows:
        if cancel_requested:
            values = ended(JobState.CANCELLED, now)
        elif crashes + 1 > maximum_attempts:
            values = ended(JobState.FAILED, now, attempts_exhausted(maximum_attempts).problem() | {"stage": stage})
        else:
            values = queued(now)
        connection.execute(update(jobs).where(jobs.c.sequence == sequence).values(crashes=crashes + 1, **values))
    return len(rows)


def attempts_exhausted(maximum_attempts: int) -> JobAttemptsExhausted:
    """Return the error of a job that lost too many processes."""
    return JobAttemptsExhausted(
        f"the process that worked on this job died {maximum_attempts} times, as FOOTNOTE_JOB_ATTEMPTS allows",
        hint="look for the reason in the service's log and the system's (memory?), then retry the job",
    )


def next_job(connection: Connection, owner: str, now: datetime) -> int | None:
    """Return the sequence of the job to do next, or `None`.

    Collections take turns: first the one with the fewest running jobs, then the one served longest ago. Within one,
    jobs whose process never died come first, then the oldest; a document's jobs run one after the other, in order.
    A process works on at most one job that lost a process before, so that a deadly job takes no other with it twice.
    """
    claimable = (jobs.c.state == JobState.QUEUED) & (jobs.c.available_at <= now)
    if _works_on_suspect(connection, owner):
        claimable &= jobs.c.crashes == 0
    for collection_id in connection.execute(_collections_in_turn(claimable)).scalars():
        sequence = connection.execute(_first_unblocked(claimable, collection_id)).scalar_one_or_none()
        if sequence is not None:
            return sequence
    return None


def _works_on_suspect(connection: Connection, owner: str) -> bool:
    suspect = exists().where(_running, jobs.c.owner == owner, jobs.c.crashes > 0)
    return bool(connection.execute(select(suspect)).scalar_one())


def _collections_in_turn(claimable: ColumnElement[bool]) -> Select[str]:
    waiting = (
        select(jobs.c.collection_id, func.min(jobs.c.sequence).label("first"))
        .where(claimable)
        .group_by(jobs.c.collection_id)
        .subquery()
    )
    busy = (
        select(jobs.c.collection_id, func.count().label("running"))
        .where(_running)
        .group_by(jobs.c.collection_id)
        .subquery()
    )
    last_served = (
        select(func.max(_served.c.started_at))
        .where(_served.c.collection_id == waiting.c.collection_id)
        .scalar_subquery()
    )
    return (
        select(waiting.c.collection_id)
        .outerjoin(busy, busy.c.collection_id == waiting.c.collection_id)
        .order_by(func.coalesce(busy.c.running, 0), last_served.nulls_first(), waiting.c.first)
    )


def _first_unblocked(claimable: ColumnElement[bool], collection_id: str) -> Select[int]:
    same_document = (_earlier.c.collection_id == jobs.c.collection_id) & (_earlier.c.document_id == jobs.c.document_id)
    waits = exists().where(same_document, _earlier.c.state == JobState.QUEUED, _earlier.c.sequence < jobs.c.sequence)
    runs = exists().where(same_document, _earlier.c.state == JobState.RUNNING)
    return (
        select(jobs.c.sequence)
        .where(claimable, jobs.c.collection_id == collection_id, ~waits, ~runs)
        .order_by(jobs.c.crashes, jobs.c.sequence)
        .limit(1)
    )


def start(
    connection: Connection, sequence: int, owner: str, now: datetime, lease_until: datetime, maximum: int
) -> RowMapping | None:
    """Give the job to the owner and return its row, or `None` if another process took it meanwhile.

    An attempt that only fails the job in order is not counted.
    """
    return (
        connection.execute(
            update(jobs)
            .where(jobs.c.sequence == sequence, jobs.c.state == JobState.QUEUED)
            .values(
                state=JobState.RUNNING,
                owner=owner,
                lease_until=lease_until,
                attempt=jobs.c.attempt + case((jobs.c.crashes < maximum, 1), else_=0),
                started_at=now,
                stage=None,
                done=0,
                total=None,
                unit=None,
                stages=[],
            )
            .returning(jobs)
        )
        .mappings()
        .one_or_none()
    )
