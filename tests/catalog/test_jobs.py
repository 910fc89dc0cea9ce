import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.job import Job, JobState, Progress
from app.catalog.jobs import Jobs
from app.catalog.process_owner import ProcessOwner
from app.errors import Conflict, InvalidRequest, NotFound, QueueFull

Enqueue = Callable[..., Job]
CLAIM_UNTIL_EMPTY = Path(__file__).with_name("claim_until_empty.py")

CLAIM_AND_HANG = """
import sys
from pathlib import Path
from app.catalog.database import Database
from app.catalog.jobs import Jobs
from app.catalog.process_owner import ProcessOwner
folder = Path(sys.argv[1])
jobs = Jobs(Database(folder / "catalog.db"), max_queued=10, lease_seconds=3600)
owner = ProcessOwner(folder / "workers")
print(jobs.claim(owner.id).id, flush=True)
sys.stdin.readline()
"""


def test_a_queued_job_waits_with_what_it_was_given(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    job = enqueue(handbook, "leave-2026", original="abc")
    assert jobs.get(job.id) == job
    assert job.id.startswith("job_")
    assert (job.kind, job.collection, job.collection_id) == ("ingest", "handbook", handbook.id)
    assert (job.document_id, job.state, job.attempt, job.payload) == ("leave-2026", "queued", 0, {"original": "abc"})
    assert (job.stage, job.progress, job.stages, job.error) == (None, Progress(0, None, None), (), None)
    assert (job.created_at, job.started_at, job.finished_at) == (clock.now, None, None)
    assert not job.is_finished
    assert jobs.queued_count() == 1
    assert jobs.get("job_0") is None


def test_one_job_above_the_cap_is_refused_with_a_time_to_wait(
    database: Database, handbook: Collection, clock: Any
) -> None:
    jobs = Jobs(database, max_queued=2, lease_seconds=60, clock=clock)
    ask = {"collection_id": handbook.id, "collection": "handbook", "payload": {}}
    first = jobs.enqueue("ingest", document_id="a", **ask)
    jobs.enqueue("ingest", document_id="b", **ask)
    with pytest.raises(QueueFull) as refused:
        jobs.enqueue("ingest", document_id="c", **ask)
    assert refused.value.retry_after
    assert jobs.queued_count() == 2
    jobs.claim("one")
    jobs.finish(first.id, "one", "failed")
    jobs.enqueue("ingest", document_id="c", **ask)
    with pytest.raises(QueueFull):
        jobs.retry(first.id)


def test_a_job_for_a_collection_that_is_gone_is_refused(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, collections: Collections
) -> None:
    collections.delete("handbook")
    with pytest.raises(NotFound):
        enqueue(handbook)
    assert jobs.queued_count() == 0


def test_progress_is_seen_while_the_job_runs(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("one")
    loaded = [{"name": "load", "ms": 310.0}]
    assert jobs.progress(job_id, "one", stage="embed", done=128, total=420, unit="chunks", stages=loaded)
    found = jobs.get(job_id)
    assert found is not None
    assert (found.stage, found.progress, found.stages) == ("embed", Progress(128, 420, "chunks"), tuple(loaded))
    assert jobs.progress(job_id, "one", stage="write")
    found = jobs.get(job_id)
    assert found is not None
    assert (found.stage, found.progress, found.stages) == ("write", Progress(0, None, None), tuple(loaded))


def test_a_finished_job_tells_how_it_went(jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any) -> None:
    good, bad = enqueue(handbook, "good").id, enqueue(handbook, "bad").id
    jobs.claim("one")
    jobs.claim("one")
    clock.pass_time(3)
    stages = [{"name": "load", "ms": 1.5}]
    assert jobs.finish(good, "one", "succeeded", result={"outcome": "created"}, stages=stages)
    assert jobs.finish(bad, "one", "failed", error={"code": "empty_document", "stage": "load"})
    found = jobs.get(good)
    assert found is not None
    assert (found.state, found.result, found.error) == (JobState.SUCCEEDED, {"outcome": "created"}, None)
    assert (found.stages, found.finished_at, found.is_finished) == (tuple(stages), clock.now, True)
    found = jobs.get(bad)
    assert found is not None
    assert (found.state, found.result) == (JobState.FAILED, None)
    assert found.error == {"code": "empty_document", "stage": "load"}
    assert not jobs.finish(bad, "one", "succeeded")


@pytest.mark.parametrize("end", ["finish", "cancel", "exhaust"])
def test_a_password_is_shown_to_the_worker_alone_and_wiped_at_the_end(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, tmp_path: Path, database: Database, end: str
) -> None:
    job = enqueue(handbook, "leave-2026", original="abc", password="hunter2-secret")
    assert "hunter2-secret" not in repr(job) + repr(jobs.get(job.id)) + repr(jobs.list(None, limit=1))
    if end == "cancel":
        jobs.cancel(job.id)
    else:
        claimed = jobs.claim("one")
        assert claimed is not None
        assert claimed.payload["password"] == "hunter2-secret"
    if end == "finish":
        jobs.finish(job.id, "one", "failed")
    if end == "exhaust":
        for _ in range(4):
            jobs.release_owners(lambda _owner: True)
            jobs.claim("one")
    database.close()
    assert b"hunter2-secret" not in (tmp_path / "catalog.db").read_bytes()
    found = jobs.get(job.id)
    assert found is not None
    assert found.is_finished


def test_a_waiting_job_is_cancelled_at_once_a_running_one_is_asked_a_finished_one_is_left(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    running, waiting = enqueue(handbook, "a").id, enqueue(handbook, "b").id
    jobs.claim("one")
    assert jobs.cancel(waiting).state is JobState.CANCELLED
    asked = jobs.cancel(running)
    assert (asked.state, asked.cancel_requested) == (JobState.RUNNING, True)
    assert jobs.heartbeat("one") == {running}
    assert not jobs.progress(running, "one", stage="embed")
    assert jobs.finish(running, "one", "cancelled")
    assert jobs.cancel(running).state is JobState.CANCELLED
    assert jobs.claim("one") is None
    with pytest.raises(NotFound):
        jobs.cancel("job_0")


def test_a_job_asked_to_stop_is_cancelled_instead_of_queued_again(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("one")
    jobs.cancel(job_id)
    assert jobs.requeue(job_id, "one")
    found = jobs.get(job_id)
    assert found is not None
    assert found.state is JobState.CANCELLED


def test_a_documents_jobs_are_cancelled_together(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection
) -> None:
    enqueue(handbook, "a")
    jobs.claim("one")
    enqueue(handbook, "a")
    enqueue(handbook, "b")
    kept = {enqueue(handbook, "c").id, enqueue(recipes, "a").id, enqueue(handbook, None).id}
    many = ["a", "b", *(f"d{number}" for number in range(1200))]
    assert jobs.cancel_for_document(handbook.id, many) == 3
    waiting, _ = jobs.list(None, state="queued", limit=10)
    assert {job.id for job in waiting} == kept
    assert jobs.cancel_for_document(handbook.id, []) == 0


def test_only_a_failed_or_cancelled_job_is_tried_again(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    job_id = enqueue(handbook).id
    with pytest.raises(Conflict):
        jobs.retry(job_id)
    jobs.claim("one")
    with pytest.raises(Conflict):
        jobs.retry(job_id)
    jobs.progress(job_id, "one", stage="embed", done=3, total=4, unit="chunks", stages=[{"name": "load", "ms": 1}])
    jobs.finish(job_id, "one", "failed", error={"code": "embedding_unavailable"})
    again = jobs.retry(job_id)
    assert (again.state, again.error, again.stage, again.finished_at) == (JobState.QUEUED, None, None, None)
    assert (again.progress, again.stages, again.cancel_requested) == (Progress(0, None, None), (), False)
    jobs.claim("one")
    jobs.finish(job_id, "one", "succeeded")
    with pytest.raises(Conflict):
        jobs.retry(job_id)
    with pytest.raises(NotFound):
        jobs.retry("job_0")


def test_a_running_job_of_a_deleted_collection_is_told_to_stop(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, collections: Collections
) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("one")
    collections.delete("handbook")
    assert not jobs.progress(job_id, "one", stage="embed")
    assert not jobs.finish(job_id, "one", "succeeded")


def test_a_list_shows_what_was_asked_for_newest_first(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection, clock: Any
) -> None:
    made = []
    for collection, document_id in ((handbook, "a"), (handbook, "b"), (recipes, "a")):
        made.append(enqueue(collection, document_id).id)
        clock.pass_time(1)
    first, second, third = made
    jobs.claim("one")

    def listed(*ids: str, **wanted: Any) -> list[str]:
        return [job.id for job in jobs.list(ids or None, limit=10, **wanted)[0]]

    assert listed() == [third, second, first]
    assert listed(handbook.id) == [second, first]
    assert listed(handbook.id, collection_id=recipes.id) == []
    assert listed(collection_id=recipes.id) == [third]
    assert listed(state="running") == [first]
    assert listed(document_id="a") == [third, first]
    assert jobs.list([], limit=10) == ([], None)
    page, cursor = jobs.list(None, limit=2)
    rest, end = jobs.list(None, limit=2, cursor=cursor)
    assert [job.id for job in (*page, *rest)] == [third, second, first]
    assert end is None
    with pytest.raises(InvalidRequest):
        jobs.list(None, limit=2, cursor="job_7")


def test_jobs_are_counted_by_state(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    for number in range(3):
        enqueue(handbook, f"d{number}")
    jobs.claim("one")
    assert jobs.counts() == {"queued": 2, "running": 1, "succeeded": 0, "failed": 0, "cancelled": 0}


def test_unfinished_jobs_of_a_document_are_known(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection
) -> None:
    running = enqueue(handbook, "a", original="one").id
    jobs.claim("w")
    waiting = enqueue(handbook, "a", original="two").id
    ended = enqueue(handbook, "b", original="three").id
    jobs.cancel(ended)
    enqueue(handbook, None)
    enqueue(recipes, "a", original="four")
    assert [job.id for job in jobs.unfinished(handbook.id, "a")] == [running, waiting]
    assert jobs.unfinished(handbook.id, "b") == []


def test_originals_are_wanted_by_jobs_that_may_run_again(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection
) -> None:
    done = enqueue(handbook, "a", original="one").id
    jobs.claim("w")
    jobs.finish(done, "w", "succeeded", result={})
    enqueue(handbook, "a", original="two")
    jobs.cancel(enqueue(handbook, "b", original="two").id)
    jobs.cancel(enqueue(handbook, "b", original="three").id)
    enqueue(recipes, "a", original="four")
    assert jobs.wanted_originals(handbook.id) == {"two": {"a", "b"}, "three": {"b"}}


def test_finished_jobs_are_forgotten_after_their_time(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    document_ids = [f"d{number}" for number in range(750)]
    for document_id in document_ids:
        enqueue(handbook, document_id)
    assert jobs.cancel_for_document(handbook.id, document_ids) == 750
    clock.pass_time(10)
    late, waiting = enqueue(handbook, "late").id, enqueue(handbook, "waiting").id
    jobs.cancel(late)
    assert jobs.remove_finished(clock.now - timedelta(seconds=5)) == 750
    assert {job.id for job in jobs.list(None, limit=10)[0]} == {late, waiting}
    assert jobs.remove_finished(clock.now - timedelta(seconds=5)) == 0


def test_who_waits_for_a_job_is_woken_when_it_ends(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("one")
    seen: list[Job] = []
    waiter = threading.Thread(target=lambda: seen.append(jobs.wait(job_id, timeout=30)))
    waiter.start()
    jobs.finish(job_id, "one", "succeeded", result={"outcome": "created"})
    waiter.join(10)
    assert seen[0].result == {"outcome": "created"}


def test_waiting_ends_with_its_time(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    job_id = enqueue(handbook).id
    began = time.monotonic()
    assert jobs.wait(job_id, timeout=0.1).state is JobState.QUEUED
    assert 0.1 <= time.monotonic() - began < 5
    with pytest.raises(NotFound):
        jobs.wait("job_0", timeout=10)


def test_a_worker_that_sleeps_is_woken_by_a_new_job(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    claimed: list[Job | None] = []
    asleep = threading.Event()

    def work() -> None:
        with jobs.wake:
            asleep.set()
            assert jobs.wake.wait(30)
        claimed.append(jobs.claim("one"))

    worker = threading.Thread(target=work)
    worker.start()
    asleep.wait(10)
    job = enqueue(handbook)
    worker.join(10)
    assert [found.id for found in claimed if found] == [job.id]


@pytest.fixture
def present_jobs(database: Database) -> Jobs:
    """The queue by the real clock, as other processes see it."""
    return Jobs(database, max_queued=1000, lease_seconds=60)


def _enqueue(jobs: Jobs, collection: Collection, document_id: str) -> Job:
    return jobs.enqueue(
        "ingest", collection_id=collection.id, collection=collection.name, document_id=document_id, payload={}
    )


def test_who_waits_sees_what_another_process_ended(
    present_jobs: Jobs, handbook: Collection, tmp_path: Path, start_python: Any
) -> None:
    job = _enqueue(present_jobs, handbook, "leave-2026")
    process = start_python(CLAIM_UNTIL_EMPTY, tmp_path)
    process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    ended = present_jobs.wait(job.id, timeout=30)
    assert ended.state is JobState.SUCCEEDED
    assert process.communicate(timeout=30) == (json.dumps([job.id]), "")


def test_a_killed_processs_job_is_taken_back_at_once_and_resumes_as_attempt_two(
    present_jobs: Jobs, handbook: Collection, tmp_path: Path, start_python: Any
) -> None:
    job_id = _enqueue(present_jobs, handbook, "leave-2026").id
    process = start_python("-c", CLAIM_AND_HANG, tmp_path)
    assert process.stdout.readline().strip() == job_id
    owner = ProcessOwner(tmp_path / "workers")
    assert present_jobs.release_owners(owner.is_dead) == 0
    assert present_jobs.claim(owner.id) is None
    process.kill()
    process.wait(30)
    assert present_jobs.release_owners(owner.is_dead) == 1
    again = present_jobs.claim(owner.id)
    assert again is not None
    assert (again.id, again.attempt) == (job_id, 2)
    owner.close()


def test_four_processes_do_each_job_exactly_once(
    present_jobs: Jobs, collections: Collections, tmp_path: Path, start_python: Any
) -> None:
    made = [collections.create(f"c{number}", settings={}) for number in range(5)]
    # Every document has two jobs, so that order within a document is at stake as well.
    queued = [_enqueue(present_jobs, made[number % 5], f"d{number // 10}").id for number in range(200)]
    processes = [start_python(CLAIM_UNTIL_EMPTY, tmp_path) for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [errors for _, errors in outputs] == [""] * 4
    done = [json.loads(output) for output, _ in outputs]
    assert sorted(job_id for by_process in done for job_id in by_process) == sorted(queued)
    assert {job.attempt for job in present_jobs.list(None, state="succeeded", limit=300)[0]} == {1}
