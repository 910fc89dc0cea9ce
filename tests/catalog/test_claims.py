from collections.abc import Callable
from typing import Any

import pytest

from app.catalog.claims import attempts_exhausted
from app.catalog.collections import Collection, Collections
from app.catalog.job import Job, JobState
from app.catalog.jobs import Jobs

Enqueue = Callable[..., Job]


def _claimed(jobs: Jobs, owner: str = "one") -> str | None:
    job = jobs.claim(owner)
    return job.id if job else None


def test_the_oldest_job_comes_first(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    queued = [enqueue(handbook, f"d{number}").id for number in range(5)]
    assert [_claimed(jobs) for _ in range(6)] == [*queued, None]


def test_a_claimed_job_runs_for_its_owner(jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any) -> None:
    queued = enqueue(handbook, "leave-2026", original="abc", password="hunter2-secret")
    clock.pass_time(5)
    claimed = jobs.claim("one")
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.owner, claimed.attempt) == (queued.id, JobState.RUNNING, "one", 1)
    assert (claimed.collection, claimed.document_id, claimed.started_at) == ("handbook", "leave-2026", clock.now)
    assert claimed.payload == {"original": "abc", "password": "hunter2-secret"}
    assert not claimed.exhausted


def test_jobs_of_one_document_run_one_after_the_other_in_order(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection
) -> None:
    first, second, third = (enqueue(handbook, "leave-2026").id for _ in range(3))
    elsewhere = enqueue(recipes, "leave-2026").id
    assert {_claimed(jobs), _claimed(jobs)} == {first, elsewhere}
    assert _claimed(jobs) is None
    jobs.finish(first, "one", "failed")
    assert _claimed(jobs) == second
    assert _claimed(jobs) is None
    jobs.finish(second, "one", "succeeded")
    assert _claimed(jobs) == third


def test_a_retried_job_waits_for_a_later_one_that_runs(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    first, second = enqueue(handbook).id, enqueue(handbook).id
    jobs.claim("one")
    jobs.finish(first, "one", "failed")
    assert _claimed(jobs) == second
    jobs.retry(first)
    assert _claimed(jobs) is None
    jobs.finish(second, "one", "succeeded")
    assert _claimed(jobs) == first


def test_work_on_a_whole_collection_is_one_at_a_time_too(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    first, second = enqueue(handbook, None).id, enqueue(handbook, None).id
    document = enqueue(handbook, "leave-2026").id
    assert {_claimed(jobs), _claimed(jobs)} == {first, document}
    assert _claimed(jobs) is None
    jobs.finish(first, "one", "succeeded")
    assert _claimed(jobs) == second


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_tenants_many_jobs_do_not_starve_anothers_few(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection, clock: Any, threads: int
) -> None:
    for number in range(50):
        enqueue(handbook, f"d{number}")
    running = [jobs.claim("one") for _ in range(threads)]
    few = {enqueue(recipes, f"d{number}").id for number in range(3)}
    order: list[str] = []
    while not few <= set(order):
        clock.pass_time(1)
        ended = running.pop(0)
        assert ended is not None
        jobs.finish(ended.id, "one", "succeeded")
        running.append(jobs.claim("one"))
        assert running[-1] is not None
        order.append(running[-1].id)
    assert len(order) <= 2 * len(few)


def test_a_collection_whose_jobs_are_all_blocked_does_not_hide_another(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, recipes: Collection, collections: Collections
) -> None:
    third = collections.create("third", settings={})
    enqueue(handbook)
    enqueue(handbook)
    assert jobs.claim("one") is not None
    enqueue(recipes)
    jobs.claim("one")
    free = enqueue(third).id
    enqueue(recipes)
    assert _claimed(jobs) == free
    assert _claimed(jobs) is None


def test_a_delayed_job_and_the_ones_behind_it_wait(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    first, second, other = enqueue(handbook).id, enqueue(handbook).id, enqueue(handbook, "other").id
    assert _claimed(jobs) == first
    assert jobs.requeue(first, "one", delay_seconds=30)
    assert _claimed(jobs) == other
    assert _claimed(jobs) is None
    clock.pass_time(30)
    again = jobs.claim("one")
    assert again is not None
    assert (again.id, again.attempt) == (first, 2)
    jobs.finish(first, "one", "succeeded")
    assert _claimed(jobs) == second


def test_a_silent_owners_job_is_taken_over_and_a_beating_ones_is_not(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    silent = enqueue(handbook, "a").id
    assert _claimed(jobs, "silent") == silent
    beating = enqueue(handbook, "b").id
    assert _claimed(jobs, "beating") == beating
    clock.pass_time(59)
    assert jobs.heartbeat("beating") == set()
    assert _claimed(jobs, "other") is None
    clock.pass_time(1)
    taken = jobs.claim("other")
    assert taken is not None
    assert (taken.id, taken.owner, taken.attempt) == (silent, "other", 2)
    assert _claimed(jobs, "other") is None


def test_a_process_that_slept_does_not_take_its_own_job_twice(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    mine = enqueue(handbook).id
    assert _claimed(jobs, "one") == mine
    clock.pass_time(3600)
    assert _claimed(jobs, "one") is None
    assert jobs.finish(mine, "one", "succeeded")


def test_an_owner_that_lost_its_job_changes_nothing(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection, clock: Any
) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("slow")
    clock.pass_time(60)
    jobs.claim("new")
    before = jobs.get(job_id)
    assert not jobs.progress(job_id, "slow", stage="embed", done=1)
    assert not jobs.finish(job_id, "slow", "succeeded", result={"outcome": "created"})
    assert not jobs.requeue(job_id, "slow")
    assert jobs.heartbeat("slow") == set()
    assert jobs.get(job_id) == before


def test_jobs_of_dead_processes_come_back_at_once(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    for number in range(4):
        enqueue(handbook, f"d{number}")
    lost = {_claimed(jobs, "dead"), _claimed(jobs, "dead")}
    kept = _claimed(jobs, "alive")
    assert jobs.release_owners(lambda owner: owner == "dead") == 2
    assert jobs.release_owners(lambda owner: owner == "dead") == 0
    running, _ = jobs.list(None, state="running", limit=10)
    assert [job.id for job in running] == [kept]
    waiting, _ = jobs.list(None, state="queued", limit=10)
    assert lost < {job.id for job in waiting}


def test_a_job_asked_to_stop_is_not_tried_again_when_its_process_dies(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    job_id = enqueue(handbook).id
    jobs.claim("dead")
    jobs.cancel(job_id)
    jobs.release_owners(lambda _owner: True)
    found = jobs.get(job_id)
    assert found is not None
    assert found.state is JobState.CANCELLED


def _die(jobs: Jobs, job_id: str) -> Job:
    claimed = jobs.claim("dead")
    assert claimed is not None
    assert claimed.id == job_id
    jobs.progress(job_id, "dead", stage="load")
    jobs.release_owners(lambda owner: owner == "dead")
    return claimed


def test_a_job_that_kills_its_process_each_time_is_handed_out_once_more_to_be_failed(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    job_id = enqueue(handbook).id
    attempts = [_die(jobs, job_id) for _ in range(3)]
    assert [(job.attempt, job.exhausted) for job in attempts] == [(1, False), (2, False), (3, False)]
    last = jobs.claim("next")
    assert last is not None
    assert (last.attempt, last.exhausted) == (3, True)
    jobs.finish(job_id, "next", "failed", error=attempts_exhausted(3).problem())
    assert _claimed(jobs) is None


def test_a_job_that_even_kills_the_process_that_fails_it_fails_in_the_catalog(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    job_id = enqueue(handbook, "leave-2026", password="hunter2-secret").id
    for _ in range(4):
        _die(jobs, job_id)
    found = jobs.get(job_id)
    assert found is not None
    assert found.state is JobState.FAILED
    assert found.finished_at is not None
    assert found.error is not None
    assert found.error["code"] == "job_attempts_exhausted"
    assert found.error["stage"] == "load"
    assert found.error["detail"]
    assert found.error["hint"]
    assert _claimed(jobs) is None


def test_a_retry_gives_an_exhausted_job_all_its_attempts_again(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    job_id = enqueue(handbook).id
    for _ in range(4):
        _die(jobs, job_id)
    jobs.retry(job_id)
    claimed = jobs.claim("one")
    assert claimed is not None
    assert (claimed.id, claimed.attempt, claimed.exhausted) == (job_id, 1, False)


def test_a_transient_fault_is_no_death(jobs: Jobs, enqueue: Enqueue, handbook: Collection) -> None:
    job_id = enqueue(handbook).id
    for attempt in range(1, 6):
        claimed = jobs.claim("one")
        assert claimed is not None
        assert (claimed.attempt, claimed.exhausted) == (attempt, False)
        jobs.requeue(job_id, "one")


def test_a_job_that_lost_a_process_goes_behind_the_others_of_its_collection(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    poisoned = enqueue(handbook, "poisoned").id
    _die(jobs, poisoned)
    others = [enqueue(handbook, f"d{number}").id for number in range(3)]
    assert [_claimed(jobs) for _ in range(4)] == [*others, poisoned]


def test_a_process_works_on_one_job_at_a_time_that_lost_a_process_before(
    jobs: Jobs, enqueue: Enqueue, handbook: Collection
) -> None:
    suspects = {enqueue(handbook, "poisoned").id, enqueue(handbook, "innocent").id}
    assert {_claimed(jobs, "dead"), _claimed(jobs, "dead")} == suspects
    jobs.release_owners(lambda _owner: True)
    first = _claimed(jobs, "one")
    assert first in suspects
    assert _claimed(jobs, "one") is None
    fresh = enqueue(handbook, "fresh").id
    assert _claimed(jobs, "one") == fresh
    second = _claimed(jobs, "two")
    assert {first, second} == suspects
