"""What a running job tells of itself through the catalog, and how it learns that it was cancelled."""

import threading
import time
from typing import NamedTuple

from app.catalog.job import Job
from app.catalog.jobs import Jobs
from app.errors import Cancelled

PROGRESS_SECONDS = 0.25
"""Least time between two things that one job tells, since each costs a commit."""


class Stopping(Exception):
    """The worker stops at the next safe point."""


class Postponed(Exception):
    """The job is to be done again after some seconds, and no thread waits for it meanwhile."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.1f} s")
        self.seconds = seconds


class _State(NamedTuple):
    stage: str
    done: int
    total: int | None
    unit: str | None


class Report:
    """`JobReport` of one claimed job.

    What comes too soon after what was told before is told by `catch_up`, which another thread calls now and then: a
    short stage costs nothing, and a long one is seen although it never advances.
    """

    def __init__(self, jobs: Jobs, job: Job, owner: str, stopping: threading.Event) -> None:
        self._jobs, self._job, self._owner, self._stopping = jobs, job, owner, stopping
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._state: _State | None = None
        self._told: _State | None = None
        self._told_at = self._began = time.perf_counter()
        self._timings: dict[str, float] = {}

    @property
    def job_id(self) -> str:
        """Return the job's id."""
        return self._job.id

    @property
    def current_stage(self) -> str | None:
        """Return the stage the job is in."""
        return None if self._state is None else self._state.stage

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        """Begin a stage; raise `Cancelled` if the job was cancelled before it."""
        with self._lock:
            self._end_stage()
            self._state = _State(name, 0, total, unit)
            self._tell_in_time()
        if not self.cancelled.is_set() and name == "load":
            # The one place where a cancellation must not be seen late: see `run_ingest`.
            current = self._jobs.get(self.job_id)
            if current is None or current.cancel_requested:
                self.cancelled.set()
        self._check()

    def advance(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Say how much of the stage is done, and of how much if that is known now; raise `Cancelled` if it was."""
        self.note(done, total, unit)
        self._check()

    def note(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Say the same where a cancellation comes too late."""
        with self._lock:
            if self._state is not None:
                before = self._state
                self._state = _State(before.stage, done, total or before.total, unit or before.unit)
                self._tell_in_time()

    def catch_up(self) -> None:
        """Tell what came too soon to be told."""
        with self._lock:
            if self._state != self._told:
                self._tell()

    def end(self) -> dict[str, float]:
        """End the last stage and return every stage's milliseconds."""
        with self._lock:
            self._end_stage()
            return dict(self._timings)

    def _end_stage(self) -> None:
        now = time.perf_counter()
        if self._state is not None:
            name = self._state.stage
            self._timings[name] = round(self._timings.get(name, 0.0) + (now - self._began) * 1000, 2)
        self._began, self._state = now, None

    def _tell_in_time(self) -> None:
        if time.perf_counter() - self._told_at >= PROGRESS_SECONDS:
            self._tell()

    def _tell(self) -> None:
        if self._state is None:
            return
        self._told, self._told_at = self._state, time.perf_counter()
        stage, done, total, unit = self._state
        ended = [{"name": name, "ms": milliseconds} for name, milliseconds in self._timings.items()]
        self._jobs.progress(self.job_id, self._owner, stage=stage, done=done, total=total, unit=unit, stages=ended)

    def _check(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled("the job was cancelled")
        if self._stopping.is_set():
            raise Stopping
