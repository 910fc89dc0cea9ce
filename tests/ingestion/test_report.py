"""What a job tells of itself: not more than its cost is worth, and nothing is kept back for long."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.job import Job
from app.catalog.jobs import Jobs
from app.errors import Cancelled
from app.ingestion import report as reports
from app.ingestion.report import Report, Stopping


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    database = Database(tmp_path / "catalog.db")
    database.migrate()
    made = Collections(database).create("c", settings={"embedding": {"model": "m"}})
    jobs = Jobs(database, max_queued=10, lease_seconds=60)
    jobs.enqueue("rebuild", collection_id=made.id, collection="c", document_id=None, payload={})
    yield jobs
    database.close()


@pytest.fixture
def job(jobs: Jobs) -> Job:
    claimed = jobs.claim("owner")
    assert claimed is not None
    return claimed


@pytest.fixture
def report(jobs: Jobs, job: Job) -> Report:
    return Report(jobs, job, "owner", threading.Event())


def seen(jobs: Jobs, job: Job) -> tuple[Any, ...]:
    now = jobs.get(job.id)
    assert now is not None
    return now.stage, now.progress.done, now.progress.total, now.progress.unit


def test_a_stage_that_never_advances_is_told_when_somebody_looks_after_it(jobs: Jobs, job: Job, report: Report) -> None:
    report.stage("load")
    assert seen(jobs, job) == (None, 0, None, None), "a short stage costs no commit"
    report.catch_up()
    assert seen(jobs, job) == ("load", 0, None, None)
    changes = jobs.get(job.id).changes  # type: ignore[union-attr]
    report.catch_up()
    assert jobs.get(job.id).changes == changes, "nothing new is not told again"  # type: ignore[union-attr]


def test_counts_are_told_as_they_come_and_stages_when_they_have_ended(
    jobs: Jobs, job: Job, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "PROGRESS_SECONDS", 0.0)
    report.stage("load")
    report.advance(3, 8, "pages")
    assert seen(jobs, job) == ("load", 3, 8, "pages")
    report.advance(4)
    assert seen(jobs, job) == ("load", 4, 8, "pages")
    report.stage("embed", total=20, unit="chunks")
    assert seen(jobs, job) == ("embed", 0, 20, "chunks")
    now = jobs.get(job.id)
    assert now is not None
    assert [stage["name"] for stage in now.stages] == ["load"]
    assert [*report.end()] == ["load", "embed"]


def test_a_cancellation_is_met_at_each_step_but_not_where_it_comes_too_late(report: Report) -> None:
    report.stage("write")
    report.cancelled.set()
    report.note(1, 2, "changes")
    with pytest.raises(Cancelled):
        report.advance(2)
    with pytest.raises(Cancelled):
        report.stage("index")


def test_a_worker_that_stops_ends_the_job_at_its_next_step(jobs: Jobs, job: Job) -> None:
    stopping = threading.Event()
    report = Report(jobs, job, "owner", stopping)
    stopping.set()
    with pytest.raises(Stopping):
        report.stage("load")
