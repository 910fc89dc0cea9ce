"""Many listeners of jobs in one process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.api import job_watch
from app.api.job_watch import JobWatch
from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.job import Job
from app.catalog.jobs import Jobs

BOUND_SECONDS = 10
SETTINGS = {"embedding": {"model": "m"}}


class CountedJobs(Jobs):
    """Jobs that count how often they are looked at."""

    looks = 0

    def changes(self, job_ids: object) -> dict[str, int]:  # type: ignore[override]
        self.looks += 1
        return super().changes(job_ids)  # type: ignore[arg-type]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "catalog.db")
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def jobs(database: Database, monkeypatch: pytest.MonkeyPatch) -> CountedJobs:
    monkeypatch.setattr(job_watch, "POLL_SECONDS", 0.01)
    return CountedJobs(database, max_queued=100, lease_seconds=60)


def queue(database: Database, jobs: Jobs, name: str = "c") -> Job:
    made = Collections(database).create(name, settings=SETTINGS)
    return jobs.enqueue("rebuild", collection_id=made.id, collection=name, document_id=None, payload={})


async def heard(watch: JobWatch, job: Job, after: int | None = None) -> list[Job]:
    return [state async for state in watch.follow(job, after)]


async def until(listener: "asyncio.Queue[Job]", state: str) -> Job:
    while (job := await listener.get()).state != state:
        pass
    return job


def test_every_listener_hears_how_a_job_goes_until_its_end(database: Database, jobs: CountedJobs) -> None:
    async def scenario() -> None:
        job, watch = queue(database, jobs), JobWatch(jobs)
        first: asyncio.Queue[Job] = asyncio.Queue()

        async def listen() -> None:
            async for state in watch.follow(job):
                await first.put(state)

        listening = [asyncio.create_task(listen()), *(asyncio.create_task(heard(watch, job)) for _ in range(50))]
        assert (await first.get()).state == "queued"
        # As another process would: nobody here is woken.
        other = Jobs(database, max_queued=100, lease_seconds=60)
        other.claim("owner")
        assert (await until(first, "running")).attempt == 1
        other.progress(job.id, "owner", stage="index", done=3, total=7, unit="chunks")
        while (await first.get()).progress.done != 3:
            pass
        other.finish(job.id, "owner", "succeeded", result={})
        ended = await until(first, "succeeded")
        _, *others = await asyncio.gather(*listening)
        assert all(states[-1] == ended for states in others)  # type: ignore[index]
        looks = jobs.looks
        assert looks < 1000
        await asyncio.sleep(0.05)
        assert jobs.looks == looks, "nobody listens any more"

    asyncio.run(asyncio.wait_for(scenario(), BOUND_SECONDS))


def test_a_listener_goes_on_after_the_change_it_knows(database: Database, jobs: CountedJobs) -> None:
    async def scenario() -> None:
        job, watch = queue(database, jobs), JobWatch(jobs)
        listening = asyncio.create_task(heard(watch, job, after=job.changes))
        while not jobs.looks:
            await asyncio.sleep(0)
        jobs.cancel(job.id)
        (only,) = await listening
        assert (only.state, only.changes > job.changes) == ("cancelled", True)
        assert await heard(watch, only, after=job.changes) == [only]
        assert await heard(watch, only, after=only.changes) == []

    asyncio.run(asyncio.wait_for(scenario(), BOUND_SECONDS))


def test_a_job_that_goes_with_its_collection_ends_what_listens(database: Database, jobs: CountedJobs) -> None:
    async def scenario() -> None:
        job, watch = queue(database, jobs), JobWatch(jobs)
        listening = asyncio.create_task(heard(watch, job))
        while not jobs.looks:
            await asyncio.sleep(0)
        Collections(database).delete("c")
        assert await listening == [job]

    asyncio.run(asyncio.wait_for(scenario(), BOUND_SECONDS))


def test_each_change_that_is_told_of_counts(database: Database, jobs: Jobs) -> None:
    job = queue(database, jobs)
    counts = [job.changes]

    def look() -> None:
        now = jobs.get(job.id)
        assert now is not None
        counts.append(now.changes)

    jobs.claim("owner")
    look()
    jobs.progress(job.id, "owner", stage="load")
    look()
    jobs.requeue(job.id, "owner")
    look()
    jobs.cancel(job.id)
    look()
    jobs.retry(job.id)
    look()
    jobs.claim("owner")
    jobs.release_owners(lambda _: True)
    look()
    assert counts == sorted(set(counts))
    before = counts[-1]
    jobs.heartbeat("owner")
    look()
    assert counts[-1] == before, "a lease is not told of"
