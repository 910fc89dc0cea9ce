"""Choose the next job, and take back the jobs of processes that died. Every function works inside one transaction.

The statements are built once, since building one costs several times what SQLite needs to run it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Select,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    update,
)

from app.catalog.job import JobState
from app.catalog.tables import jobs
from app.errors import JobAttemptsExhausted
from app.stores.column_types import UtcTime

_other = jobs.alias("other")
_now: ColumnElement[datetime] = bindparam("now", type_=UtcTime())
_owner: ColumnElement[str] = bindparam("owner")
_queued = jobs.c.state == JobState.QUEUED
_running = jobs.c.state == JobState.RUNNING


def changed() -> dict[str, Any]:
    """Return what changes in a job together with anything that is told of it, so that who listens hears of it."""
    return {"changes": jobs.c.changes + 1}


def ended(state: JobState, now: datetime, error: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what changes in a job that ends; its password is wiped."""
    released = {"owner": None, "lease_until": None, "password": None}
    return {"state": state, "finished_at": now, "error": error, **released, **changed()}


def queued(available_at: datetime) -> dict[str, Any]:
    """Return what changes in a job that goes back to the queue."""
    return {
        "state": JobState.QUEUED,
        "owner": None,
        "lease_until": None,
        "available_at": available_at,
        **changed(),
    }


def owned(job_id: str, owner: str) -> ColumnElement[bool]:
    """Return the condition of a running job that is this owner's."""
    return _running & (jobs.c.id == job_id) & (jobs.c.owner == owner)


# --- take back ---

LostJob: TypeAlias = Row[int, int, bool, str | None]
"""`sequence`, `crashes`, `cancel_requested` and `stage` of a job whose process is gone."""

_LOST = select(jobs.c.sequence, jobs.c.crashes, jobs.c.cancel_requested, jobs.c.stage).where(_running)
_SILENT = _LOST.where(jobs.c.lease_until <= _now, jobs.c.owner != _owner)


def jobs_of_silent_owners(connection: Connection, owner: str, now: datetime) -> Sequence[LostJob]:
    """Return running jobs whose lease has ended; the process that asks is never silent itself."""
    return connection.execute(_SILENT, {"owner": owner, "now": now}).all()


def jobs_of_dead_owners(connection: Connection, dead: Callable[[str], bool]) -> Sequence[LostJob]:
    """Return running jobs of the owners that are dead."""
    owners = connection.execute(select(jobs.c.owner).where(_running).distinct()).scalars()
    gone = [owner for owner in owners if owner is not None and dead(owner)]
    return connection.execute(_LOST.where(jobs.c.owner.in_(gone))).all()


def take_back(
    connection: Connection, lost: Sequence[LostJob], now: datetime, maximum_attempts: int
) -> Sequence[RowMapping]:
    """Put jobs that lost their process back into the queue; return those that ended instead.

    A job that has lost `maximum_attempts` processes is claimed once more, to be failed in order; if that process
    dies as well, the job fails here.
    """
    finished: list[RowMapping] = []
    for sequence, crashes, cancel_requested, stage in lost:
        if cancel_requested:
            values = ended(JobState.CANCELLED, now)
        elif crashes + 1 > maximum_attempts:
            values = ended(JobState.FAILED, now, attempts_exhausted(maximum_attempts).problem() | {"stage": stage})
        else:
            values = queued(now)
        change = update(jobs).where(jobs.c.sequence == sequence).values(crashes=crashes + 1, **values)
        row = connection.execute(change.returning(jobs)).mappings().one()
        if row["state"] != JobState.QUEUED:
            finished.append(row)
    return finished


def attempts_exhausted(maximum_attempts: int) -> JobAttemptsExhausted:
    """Return the error of a job that lost too many processes."""
    return JobAttemptsExhausted(
        f"the process that worked on this job died {maximum_attempts} times, as FOOTNOTE_JOB_ATTEMPTS allows",
        hint="look for the reason in the service's log and the system's (memory?), then retry the job",
    )


# --- choose ---


def next_job(connection: Connection, owner: str, now: datetime) -> int | None:
    """Return the sequence of the job to do next, or `None`.

    Collections take turns: first the one with the fewest running jobs, then the one served longest ago. Within one,
    jobs whose process never died come first, then the oldest; a document's jobs run one after the other, in order.
    A process works on at most one job that lost a process before, so that a deadly job takes no other with it twice.
    """
    for collection_id in connection.execute(_COLLECTIONS_IN_TURN).scalars():
        asked = {"collection": collection_id, "owner": owner, "now": now}
        sequence = connection.execute(_FIRST_UNBLOCKED, asked).scalar_one_or_none()
        if sequence is not None:
            return sequence
    return None


def start(
    connection: Connection, sequence: int, owner: str, now: datetime, lease_until: datetime, maximum_attempts: int
) -> RowMapping | None:
    """Give the job to the owner and return its row, or `None` if another process took it meanwhile.

    An attempt that only fails the job in order is not counted.
    """
    given = {
        "taken": sequence,
        "maximum": maximum_attempts,
        "owner": owner,
        "now": now,
        "lease": lease_until,
    }
    return connection.execute(_START, given).mappings().one_or_none()


def _collections_with_queued_jobs() -> CTE:
    """Return them by one look-up in the index for each, where a plain `DISTINCT` would read every queued job."""
    least = select(func.min(jobs.c.collection_id)).where(_queued)
    found = least.with_only_columns(func.min(jobs.c.collection_id).label("id")).cte("waiting", recursive=True)
    following = least.where(jobs.c.collection_id > found.c.id).scalar_subquery()
    return found.union_all(select(following).where(found.c.id.is_not(None)))


def _collections_in_turn() -> Select[str]:
    waiting = _collections_with_queued_jobs()
    its_own = jobs.c.collection_id == waiting.c.id
    running = select(func.count()).where(_running, its_own)
    last_served = select(func.max(jobs.c.started_at)).where(its_own)
    first = select(jobs.c.sequence).where(_queued, its_own).order_by(jobs.c.crashes, jobs.c.sequence).limit(1)
    turn = [question.correlate(waiting).scalar_subquery() for question in (running, last_served, first)]
    return select(waiting.c.id).where(waiting.c.id.is_not(None)).order_by(turn[0], turn[1].nulls_first(), turn[2])


def _first_unblocked() -> Select[int]:
    same_document = (_other.c.collection_id == jobs.c.collection_id) & (_other.c.document_id == jobs.c.document_id)
    waits = exists().where(same_document, _other.c.state == JobState.QUEUED, _other.c.sequence < jobs.c.sequence)
    runs = exists().where(same_document, _other.c.state == JobState.RUNNING)
    works_on_suspect = exists().where(
        _other.c.state == JobState.RUNNING, _other.c.owner == _owner, _other.c.crashes > 0
    )
    return (
        select(jobs.c.sequence)
        .where(
            _queued,
            jobs.c.collection_id == bindparam("collection"),
            jobs.c.available_at <= _now,
            or_(jobs.c.crashes == 0, ~works_on_suspect),
            ~waits,
            ~runs,
        )
        .order_by(jobs.c.crashes, jobs.c.sequence)
        .limit(1)
    )


_COLLECTIONS_IN_TURN = _collections_in_turn()
_FIRST_UNBLOCKED = _first_unblocked()
_START = (
    update(jobs)
    .where(jobs.c.sequence == bindparam("taken"), _queued)
    .values(
        state=JobState.RUNNING,
        owner=_owner,
        lease_until=bindparam("lease", type_=UtcTime()),
        attempt=jobs.c.attempt + case((jobs.c.crashes < bindparam("maximum"), 1), else_=0),
        started_at=_now,
        stage=None,
        done=0,
        total=None,
        unit=None,
        stages=[],
        **changed(),
    )
    .returning(jobs)
)
