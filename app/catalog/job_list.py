"""Look at jobs: one, several, those of a document or a collection, and counts; nothing here changes any."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, func, select

from app.catalog.database import Database
from app.catalog.job import UNFINISHED, Job, JobState
from app.catalog.paging import NewestFirst
from app.catalog.tables import jobs

BATCH = 500
_newest_first = NewestFirst(jobs)


class JobList:
    """The jobs of all collections, to look at; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, job_id: str) -> Job | None:
        """Return the job, or `None`."""
        with self._database.read() as connection:
            row = connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one_or_none()
        return Job.of(row) if row else None

    def changes(self, job_ids: Collection[str]) -> dict[str, int]:
        """Return how often each of those of the jobs that exist has changed; a look that costs little."""
        found: dict[str, int] = {}
        with self._database.read() as connection:
            for batch in batches(job_ids):
                rows = connection.execute(select(jobs.c.id, jobs.c.changes).where(jobs.c.id.in_(batch)))
                found.update((job_id, changes) for job_id, changes in rows)
        return found

    def several(self, job_ids: Collection[str]) -> "list[Job]":
        """Return those of the jobs that exist, in no order."""
        with self._database.read() as connection:
            return [
                Job.of(row)
                for batch in batches(job_ids)
                for row in connection.execute(select(jobs).where(jobs.c.id.in_(batch))).mappings()
            ]

    def queued_count(self) -> int:
        """Return how many jobs wait."""
        with self._database.read() as connection:
            return queued_count(connection)

    def counts(self) -> dict[str, int]:
        """Return how many jobs are in each state."""
        with self._database.read() as connection:
            rows = connection.execute(select(jobs.c.state, func.count()).group_by(jobs.c.state)).all()
        return dict.fromkeys((state.value for state in JobState), 0) | {state: int(count) for state, count in rows}

    def unfinished(self, collection_id: str, document_id: str | None) -> "list[Job]":
        """Return the jobs of a document that wait or run, oldest first."""
        query = select(jobs).where(
            jobs.c.collection_id == collection_id,
            jobs.c.document_id == (document_id or ""),
            jobs.c.state.in_(UNFINISHED),
        )
        with self._database.read() as connection:
            return [Job.of(row) for row in connection.execute(query.order_by(jobs.c.sequence)).mappings()]

    def wanted_originals(self, collection_id: str) -> dict[str, set[str]]:
        """Return the document ids, by `payload["original"]`, of the collection's jobs that are or may be run again."""
        original = jobs.c.payload["original"].as_string()
        query = select(original, jobs.c.document_id).where(
            jobs.c.collection_id == collection_id, jobs.c.state != JobState.SUCCEEDED, original.is_not(None)
        )
        wanted: dict[str, set[str]] = {}
        with self._database.read() as connection:
            for digest, document_id in connection.execute(query):
                wanted.setdefault(digest, set()).add(document_id)
        return wanted

    def list(
        self,
        collection_ids: Iterable[str] | None,
        *,
        collection_id: str | None = None,
        state: str | None = None,
        document_id: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> "tuple[list[Job], str | None]":
        """Return a page of jobs of these collections (`None`: all), newest first, and the next page's cursor."""
        query = select(jobs)
        if collection_ids is not None:
            query = query.where(jobs.c.collection_id.in_(list(collection_ids)))
        for column, value in (("collection_id", collection_id), ("state", state), ("document_id", document_id)):
            if value is not None:
                query = query.where(jobs.c[column] == value)
        with self._database.read() as connection:
            rows = connection.execute(_newest_first.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_first.split(rows, limit)
        return [Job.of(row) for row in page], next_cursor


def batches(ids: Collection[str]) -> list[list[str]]:
    """Return the ids in lists that one statement takes."""
    every = list(ids)
    return [every[start : start + BATCH] for start in range(0, len(every), BATCH)]


def queued_count(connection: Connection) -> int:
    """Return how many jobs wait."""
    return connection.execute(
        select(func.count()).select_from(jobs).where(jobs.c.state == JobState.QUEUED)
    ).scalar_one()
