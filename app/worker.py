"""Claim the next job and hand it to the verb that knows it; progress, cancel, lease, and the end of each job.

Threads of one process: some that work on jobs, one that renews leases and hears of cancellations, and one that brings
indexes up for several finished documents at once, since a commit costs the same for one document as for twenty.
"""

import gc
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from app.bootstrap import Services
from app.catalog.claims import attempts_exhausted
from app.catalog.job import Job
from app.catalog.process_owner import ProcessOwner
from app.errors import Cancelled, FootnoteError, StorageFull, StoreBusy, Unavailable
from app.ingestion.memory import give_back_free_memory, keep_arenas_few
from app.ingestion.refresh import refresh_due
from app.ingestion.report import Postponed, Report, Stopping
from app.ingestion.tasks import TASKS, WRITES
from app.ingestion.tidying import tidy
from app.telemetry import counters

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How late a job that another process queued may be seen."""

HEARTBEAT_SECONDS = 1.0
LONGEST_GATHERING_SECONDS = 1.0
MAINTENANCE_SECONDS = 300.0
IDLE_LOOK_SECONDS = 15.0
"""How late a collection that has become idle may be closed."""

SOURCES_SECONDS = 5.0
"""How late a source that is due may be fetched."""

BUSY_ATTEMPTS = 20
"""Attempts of a write while something long, a compaction or a swap of vectors, has its collection's store."""

CATALOG_PAUSE_SECONDS = 1.0
"""Pause before a catalog that could not be written is asked again."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Written:
    """A job whose version is committed and waits for the index."""

    job: Job
    report: Report
    result: dict[str, Any]


@dataclass(slots=True)
class Worker:
    """Work on jobs in this process until it is stopped."""

    services: Services
    warms_up: bool = True
    """Whether the embedded model is loaded before it is needed."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _has_ended_jobs: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _warming: threading.Thread | None = None
    _running: dict[str, Report] = field(default_factory=dict)
    _written: "queue.SimpleQueue[_Written | None]" = field(default_factory=queue.SimpleQueue)
    _owner: ProcessOwner | None = None
    _embedder_state: str = "ok"

    def checks(self) -> dict[str, str]:
        """Return `ok`, or what is wrong, for the worker's threads and the embedded model."""
        alive = bool(self._threads) and all(thread.is_alive() for thread in self._threads)
        return {"worker": "ok" if alive else "stopped", "embedder": self._embedder_state}

    def start(self) -> None:
        """Take back what dead processes left, then begin to work."""
        keep_arenas_few()
        self._owner = ProcessOwner(self.services.settings.data / "workers")
        released = self.services.jobs.release_owners(self._owner.is_dead)
        if released:
            log.warning("took back jobs of processes that died", extra={"jobs": released})
        loops = [("index", self._bring_indexes_up), ("heartbeat", self._renew), ("maintenance", self._maintain)]
        loops += [("idle", self._close_idle), ("sources", self._refresh_sources)]
        loops += [(f"webhooks-{number}", self._deliver) for number in range(self.services.settings.webhook_deliveries)]
        loops += [(f"ingest-{number}", self._work) for number in range(self.services.settings.ingest_threads)]
        if self.warms_up:
            # Not one of the loops: it ends.
            self._embedder_state = "loading"
            self._warming = threading.Thread(target=self._warm_up, name="footnote-warm-up", daemon=True)
            self._warming.start()
        for name, loop in loops:
            thread = threading.Thread(target=loop, name=f"footnote-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout: float = 20.0) -> None:
        """Stop at the next safe points; unfinished jobs go back to the queue."""
        self._stopping.set()
        with self.services.jobs.wake:
            self.services.jobs.wake.notify_all()
        self.services.notifier.notify()
        deadline = time.monotonic() + timeout
        self.services.ingestion.parsers.interrupt()
        for thread in self._threads:
            if thread.name.startswith("footnote-ingest"):
                thread.join(max(0.1, deadline - time.monotonic()))
        self._written.put(None)
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        self._threads.clear()
        if self._warming is not None:
            # A process that exits while onnxruntime still loads a model is aborted (134) after all its work is done.
            self._warming.join(max(0.1, deadline - time.monotonic()))
        if self._owner is not None:
            self._owner.close()

    @contextmanager
    def running(self) -> Iterator["Worker"]:
        """Work inside a `with` block."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    @property
    def _owner_id(self) -> str:
        assert self._owner is not None  # noqa: S101 - set before any thread starts
        return self._owner.id

    # --- threads ---

    def _warm_up(self) -> None:
        """Load the models before the first request needs them; a remote server is left alone until it is used."""
        try:
            embedders = self.services.embedders
            embedders.get(embedders.default_model).load()
            if self.services.language_model is not None:
                self.services.language_model.load()
        except FootnoteError as error:
            log.error("the embedded model cannot be loaded: %s", error.detail, extra={"code": error.code})  # noqa: TRY400
            self._embedder_state = error.code
        else:
            self._embedder_state = "ok"
        # What stands now stands for good. To go through it at every full collection stopped all threads for 150 ms.
        gc.collect()
        gc.freeze()

    def _work(self) -> None:
        while not self._stopping.is_set():
            job = self._persist(self._claim_or_wait)
            if job is not None:
                report = Report(self.services.jobs, job, self._owner_id, self._stopping)
                self._running[job.id] = report
                self._attempt(job, report)

    def _claim_or_wait(self) -> Job | None:
        jobs = self.services.jobs
        # Claimed inside, so that a job queued after the claim still wakes the wait.
        with jobs.wake:
            job = jobs.claim(self._owner_id)
            if job is None:
                jobs.wake.wait(POLL_SECONDS)
            return job

    def _persist(self, ask: Callable[[], _Answer]) -> _Answer | None:
        """Return the catalog's answer; ask again while it has none (a full disk, a long writer), so no thread ends.

        Returns `None` if the worker stops meanwhile; another process then takes the job back.
        """
        is_known = False
        while True:
            try:
                return ask()
            except Exception:
                if not is_known:
                    log.exception("the catalog does not answer; the worker goes on as soon as it does")
                is_known = True
            if self._stopping.wait(CATALOG_PAUSE_SECONDS):
                return None

    def _attempt(self, job: Job, report: Report) -> None:
        """Work on one job; whatever goes wrong ends this job and no other."""
        try:
            with self.services.opened.get(job.collection_id) as opened:
                if (write := WRITES.get(job.kind)) is not None:
                    result = write(self.services.ingestion, opened, job, report)
                    report.stage("index")
                    self._written.put(_Written(job, report, result))
                    return
                if job.exhausted:
                    raise attempts_exhausted(self.services.settings.job_attempts)
                result = TASKS[job.kind](self.services.ingestion, opened, job, report)
                self._finish(job, report, "succeeded", result=result)
        except Stopping:
            self._requeue(job)
        except Postponed as error:
            self._requeue(job, error.seconds)
        except Cancelled as error:
            self._finish(job, report, "cancelled", error=error)
        except FootnoteError as error:
            if self._is_put_off(job, error):
                self._requeue(job, error.retry_after or 0.0)
                return
            self._finish(job, report, "failed", error=error)
        except Exception as error:
            log.exception("a job met a bug or a full disk", extra={"job_id": job.id, "kind": job.kind})
            self._finish(job, report, "failed", error=StorageFull.told_by(error) or _bug())

    def _is_put_off(self, job: Job, error: FootnoteError) -> bool:
        """Return whether a job that met an error is done again: the worker stops, or a long writer had the store."""
        if self._stopping.is_set() and isinstance(error, Unavailable):
            return True
        return isinstance(error, StoreBusy) and job.kind in WRITES and job.attempt < BUSY_ATTEMPTS

    def _requeue(self, job: Job, delay_seconds: float = 0.0) -> None:
        self._persist(lambda: self.services.jobs.requeue(job.id, self._owner_id, delay_seconds=delay_seconds))
        self._running.pop(job.id, None)

    def _bring_indexes_up(self) -> None:
        while (first := self._written.get()) is not None:
            waiting = [first]
            while not self._written.empty():
                item = self._written.get()
                if item is None:
                    self._written.put(None)
                    break
                waiting.append(item)
            by_collection: dict[str, list[_Written]] = defaultdict(list)
            for item in waiting:
                by_collection[item.job.collection_id].append(item)
            began = time.monotonic()
            for collection_id, items in by_collection.items():
                self._bring_up(collection_id, items)
            if not self._written.empty():
                # Documents come faster than commits: let more gather, so that commits take a third of the time at most.
                self._stopping.wait(min(LONGEST_GATHERING_SECONDS, 2 * (time.monotonic() - began)))

    def _bring_up(self, collection_id: str, items: list[_Written]) -> None:
        error: FootnoteError | None = None
        try:
            with self.services.opened.get(collection_id) as opened:
                opened.catch_up(partial(_note, [item.report for item in items]))
        except FootnoteError as failure:
            error = failure
        except Exception as failure:
            log.exception("an index could not follow its store", extra={"collection_id": collection_id})
            error = StorageFull.told_by(failure) or _bug()
        for item in items:
            if error is None:
                self._finish(item.job, item.report, "succeeded", result=item.result)
            else:
                self._finish(item.job, item.report, "failed", error=error)

    def _finish(
        self,
        job: Job,
        report: Report,
        state: str,
        *,
        result: dict[str, Any] | None = None,
        error: FootnoteError | None = None,
    ) -> None:
        stage = report.current_stage
        timings = report.end()
        problem = None if error is None else error.problem() | {"stage": stage}
        self._persist(
            lambda: self.services.jobs.finish(
                job.id,
                self._owner_id,
                state,
                error=problem,
                result=None if result is None else result | {"timings_ms": timings},
                stages=[{"name": name, "ms": ms} for name, ms in timings.items()],
            )
        )
        self.services.notifier.notify()
        self._running.pop(job.id, None)
        self._has_ended_jobs.set()
        counters.add(f"jobs_{state}")
        stages = {f"{name}_ms": ms for name, ms in timings.items()}
        log.info("job ended", extra=_told_of_end(job, state, error, result) | stages)

    def _renew(self) -> None:
        while not self._stopping.wait(HEARTBEAT_SECONDS):
            if self._has_ended_jobs.is_set() and not self._running:
                # Not amid work: it would wait for memory while the pages are walked.
                self._has_ended_jobs.clear()
                give_back_free_memory()
            if self._running:
                for job_id in self._persist(lambda: self.services.jobs.heartbeat(self._owner_id)) or ():
                    report = self._running.get(job_id)
                    if report is not None:
                        report.cancelled.set()
                for report in list(self._running.values()):
                    self._persist(report.catch_up)

    def _refresh_sources(self) -> None:
        while not self._stopping.wait(SOURCES_SECONDS):
            self._persist(partial(refresh_due, self.services.ingestion))

    def _deliver(self) -> None:
        while not self._stopping.is_set():
            self._persist(self.services.notifier.deliver_or_wait)

    def _maintain(self) -> None:
        while True:
            before = datetime.now(UTC) - timedelta(days=self.services.settings.job_retention_days)
            self._persist(partial(self.services.jobs.remove_finished, before))
            self._tidy()
            if self._stopping.wait(MAINTENANCE_SECONDS):
                return

    def _close_idle(self) -> None:
        idle_seconds = self.services.settings.idle_seconds
        while not self._stopping.wait(min(idle_seconds, IDLE_LOOK_SECONDS)):
            try:
                closed = self.services.opened.close_idle(idle_seconds)
            except Exception:
                log.exception("an idle collection could not be closed")
            else:
                if closed:
                    give_back_free_memory()

    def _tidy(self) -> None:
        try:
            tidy(self.services.ingestion, self._stopping.is_set)
        except Exception:
            log.exception("the data folder could not be tidied; the next round tries again")


def _told_of_end(job: Job, state: str, error: FootnoteError | None, result: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the log says of a job's end: names and times, nothing of what is in the document."""
    began = job.started_at or job.created_at
    return {
        "job_id": job.id,
        "kind": job.kind,
        "collection": job.collection,
        "document_id": job.document_id,
        "state": state,
        "outcome": (result or {}).get("outcome"),
        "code": error.code if error else None,
        "attempt": job.attempt,
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 3),
    }


def _note(reports: Iterable[Report], done: int, total: int) -> None:
    for report in reports:
        report.note(done, total, "changes")


def _bug() -> FootnoteError:
    return FootnoteError("an unexpected error ended this job", hint="the service's log has the trace; report it")
