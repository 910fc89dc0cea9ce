import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.catalog.api_keys import ApiKeys
from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.job import Job
from app.catalog.jobs import Jobs


@dataclass
class Clock:
    """A clock that moves only when a test says so."""

    now: datetime = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "catalog.db")
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def collections(database: Database, clock: Clock) -> Collections:
    return Collections(database, clock=clock)


@pytest.fixture
def handbook(collections: Collections) -> Collection:
    return collections.create("handbook", settings={})


@pytest.fixture
def recipes(collections: Collections) -> Collection:
    return collections.create("recipes", settings={})


@pytest.fixture
def api_keys(database: Database, clock: Clock) -> ApiKeys:
    return ApiKeys(database, "the-admin-key-of-the-tests", clock=clock)


@pytest.fixture
def jobs(database: Database, clock: Clock) -> Jobs:
    return Jobs(database, max_queued=1000, lease_seconds=60, max_attempts=3, clock=clock)


Enqueue = Callable[..., Job]


@pytest.fixture
def enqueue(jobs: Jobs) -> Enqueue:
    def enqueue(collection: Collection, document_id: str | None = "leave-2026", **payload: object) -> Job:
        return jobs.enqueue(
            "ingest",
            collection_id=collection.id,
            collection=collection.name,
            document_id=document_id,
            payload=payload,
        )

    return enqueue


@pytest.fixture
def start_python() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start other server processes, which wait for a line on their standard input; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-W", "error", *map(str, arguments)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
