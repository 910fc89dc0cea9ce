"""The worker on real services: what ends a job, what stops it, and what a stop leaves behind."""

import errno
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.catalog.job import Job
from app.errors import EmbeddingUnavailable, StorageFull
from app.inference.embedders.hashed import HashedEmbedder
from app.ingestion.collections import create_collection, remove_collection
from app.ingestion.submission import Submission, Submitted
from app.settings import Settings
from app.stores.driver import sqlite_driver
from app.worker import Worker

SECONDS = 60


class Gated(HashedEmbedder):
    """Embeds passages only while its gate is open, and fails while it is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.reached = threading.Event()
        self.broken = False

    def embed_passages(self, texts: Any) -> np.ndarray:
        self.reached.set()
        assert self.gate.wait(SECONDS)
        if self.broken:
            raise EmbeddingUnavailable("the embedding model does not answer")
        return super().embed_passages(texts)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(Settings(data=tmp_path / "data", embedder="hashed", admin_key="worker-tests-admin-key"))
    yield made
    made.close()


@pytest.fixture
def collection(services: Services) -> Collection:
    return create_collection(services.ingestion, "c", title=None, description=None, settings={})


@pytest.fixture
def gated(services: Services, monkeypatch: pytest.MonkeyPatch) -> Gated:
    embedder = Gated()
    monkeypatch.setattr(services.embedders, "get", lambda _name: embedder)
    return embedder


def submit(services: Services, collection: Collection, document_id: str, text: str) -> Submitted:
    original = services.ingestion.originals(collection.id).write(text.encode())
    return services.ingestion.submit(collection, Submission(document_id, original, media_type="text/plain"))


def finished(services: Services, submitted: Submitted) -> Job:
    assert submitted.job is not None
    job = services.jobs.wait(submitted.job.id, timeout=SECONDS)
    assert job.is_finished
    return job


def test_a_job_ends_with_its_document_found_and_its_stages_timed(services: Services, collection: Collection) -> None:
    with Worker(services).running():
        job = finished(services, submit(services, collection, "a", "alpha beta"))
    assert (job.state, job.error) == ("succeeded", None)
    assert [stage["name"] for stage in job.stages] == ["load", "clean", "chunk", "embed", "write", "index"]
    assert job.result is not None
    assert job.result["chunks"] == {"total": 1, "embedded": 1, "reused": 0}
    with services.opened.get(collection.id) as opened:
        assert all(follower.revision() == opened.store.revision() for follower in opened.index.followers())


def test_the_log_names_a_job_s_document_and_what_became_of_it_and_none_of_its_text(
    services: Services, collection: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="app.worker"), Worker(services).running():
        job = finished(services, submit(services, collection, "a", "confidential words"))
    (line,) = [record for record in caplog.records if record.getMessage() == "job ended"]
    told = vars(line)
    assert (told["job_id"], told["collection"], told["document_id"]) == (job.id, "c", "a")
    assert (told["state"], told["outcome"], told["code"]) == ("succeeded", "created", None)
    assert told["seconds"] >= 0
    assert "confidential" not in repr(told)


def test_a_failed_job_says_code_detail_stage_and_leaves_the_old_version(
    services: Services, collection: Collection, gated: Gated
) -> None:
    gated.gate.set()
    with Worker(services).running():
        finished(services, submit(services, collection, "a", "alpha"))
        gated.broken = True
        job = finished(services, submit(services, collection, "a", "beta"))
    assert job.state == "failed"
    assert job.error is not None
    assert (job.error["code"], job.error["stage"]) == ("embedding_unavailable", "embed")
    with services.opened.get(collection.id) as opened:
        document = opened.store.document("a")
        assert document is not None
        assert (document.state, document.version) == ("ready", 1)
        assert opened.store.text("a", 0, None) == "alpha"


def test_a_write_that_a_long_writer_keeps_waiting_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build_services(
        Settings(data=tmp_path / "data", embedder="hashed", admin_key="worker-tests-admin-key", write_wait_seconds=0.1)
    )
    embedder = Gated()
    monkeypatch.setattr(made.embedders, "get", lambda _name: embedder)
    with closing(made) as services:
        collection = create_collection(services.ingestion, "c", title=None, description=None, settings={})
        with Worker(services, warms_up=False).running():
            submitted = submit(services, collection, "a", "alpha")
            assert submitted.job is not None
            assert embedder.reached.wait(SECONDS)
            database = services.settings.data / "collections" / collection.id / "collection.db"
            with closing(sqlite_driver().connect(str(database), isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                embedder.gate.set()
                while (job := services.jobs.wait(submitted.job.id, timeout=0.1)).attempt < 2:
                    assert not job.is_finished
                other.execute("ROLLBACK")
            job = finished(services, submitted)
    assert (job.state, job.error) == ("succeeded", None)


def test_a_bug_in_one_job_ends_that_job_and_no_other(
    services: Services, collection: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = services.ingestion.parsers.prepare

    def prepare(request: Any, *more: Any) -> Any:
        if request.filename == "poison":
            raise ZeroDivisionError
        return real(request, *more)

    monkeypatch.setattr(type(services.ingestion.parsers), "prepare", lambda _self, *given: prepare(*given))
    poison = Submission("p", services.ingestion.originals(collection.id).write(b"x"), filename="poison")
    with Worker(services).running():
        bad = finished(services, services.ingestion.submit(collection, poison))
        good = finished(services, submit(services, collection, "a", "alpha"))
    assert bad.error is not None
    assert (bad.state, bad.error["code"], good.state) == ("failed", "internal_error", "succeeded")
    assert "ZeroDivisionError" not in str(bad.error)
    assert "ZeroDivisionError" in caplog.text


def test_a_cancelled_job_stops_and_leaves_no_document(services: Services, collection: Collection, gated: Gated) -> None:
    with Worker(services).running():
        submitted = submit(services, collection, "a", "alpha")
        assert gated.reached.wait(SECONDS)
        assert submitted.job is not None
        services.jobs.cancel(submitted.job.id)
        services.ingestion.delete(collection, ["a"])
        gated.gate.set()
        job = finished(services, submitted)
    assert job.state == "cancelled"
    with services.opened.get(collection.id) as opened:
        assert opened.store.document("a") is None


def test_a_delete_while_its_document_is_in_work_wins(services: Services, collection: Collection, gated: Gated) -> None:
    with Worker(services).running():
        submitted = submit(services, collection, "a", "alpha")
        assert gated.reached.wait(SECONDS)
        assert services.ingestion.delete(collection, ["a"]) == 1
        again = submit(services, collection, "a", "beta")
        gated.gate.set()
        assert finished(services, submitted).state == "cancelled"
        assert finished(services, again).state == "succeeded"
    with services.opened.get(collection.id) as opened:
        assert opened.store.text("a", 0, None) == "beta"


def test_a_newer_version_waits_for_the_older_one(services: Services, collection: Collection, gated: Gated) -> None:
    with Worker(services).running():
        first = submit(services, collection, "a", "alpha")
        assert gated.reached.wait(SECONDS)
        second = submit(services, collection, "a", "beta")
        gated.gate.set()
        assert finished(services, first).state == "succeeded"
        assert finished(services, second).state == "succeeded"
    with services.opened.get(collection.id) as opened:
        document = opened.store.document("a")
        assert document is not None
        assert document.version == 2
        assert opened.store.text("a", 0, None) == "beta"


def test_a_stop_puts_unfinished_work_back_into_the_queue(
    services: Services, collection: Collection, gated: Gated
) -> None:
    worker = Worker(services)
    worker.start()
    submitted = submit(services, collection, "a", "alpha")
    assert gated.reached.wait(SECONDS)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    gated.gate.set()
    stopping.join(SECONDS)
    assert submitted.job is not None
    job = services.jobs.get(submitted.job.id)
    assert job is not None
    assert job.state in ("queued", "succeeded")
    with Worker(services).running():
        assert finished(services, submitted).state == "succeeded"


@pytest.mark.parametrize("step", ["claim", "finish", "heartbeat"])
def test_a_catalog_that_cannot_be_written_for_a_while_stops_no_thread(
    services: Services, collection: Collection, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr("app.worker.CATALOG_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("app.worker.HEARTBEAT_SECONDS", 0.01)
    real = getattr(services.jobs, step)
    refusals = iter(range(3))
    recovered = threading.Event()

    def refuse_at_first(*args: Any, **more: Any) -> Any:
        if next(refusals, None) is not None:
            raise StorageFull("the disk that holds the catalog is full")
        recovered.set()
        return real(*args, **more)

    monkeypatch.setattr(services.jobs, step, refuse_at_first)
    gate = threading.Event()
    prepare = services.ingestion.parsers.prepare
    monkeypatch.setattr(
        type(services.ingestion.parsers),
        "prepare",
        lambda _self, *given: gate.wait(SECONDS) and prepare(*given),
    )
    with Worker(services).running() as worker:
        submitted = submit(services, collection, "a", "alpha")
        assert step != "heartbeat" or recovered.wait(SECONDS)
        gate.set()
        assert finished(services, submitted).state == "succeeded"
        assert recovered.is_set()
        assert worker.checks()["worker"] == "ok"


def test_a_disk_without_room_fails_the_job_by_its_name(
    services: Services, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(_self: Any, _request: Any, _report: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(services.ingestion.parsers), "prepare", prepare)
    with Worker(services).running():
        job = finished(services, submit(services, collection, "a", "alpha"))
    assert job.error is not None
    assert (job.state, job.error["code"], job.error["stage"]) == ("failed", "storage_full", "load")


def test_a_collection_removed_under_its_job_ends_the_job(
    services: Services, collection: Collection, gated: Gated
) -> None:
    with Worker(services).running() as worker:
        submit(services, collection, "a", "alpha")
        assert gated.reached.wait(SECONDS)
        remove_collection(services.ingestion, collection)
        gated.gate.set()
    assert not (services.settings.data / "collections" / collection.id).exists()
    assert worker.checks()["worker"] == "stopped"


def test_a_stop_waits_for_the_model_that_is_being_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = build_services(Settings(data=tmp_path / "data", admin_key="worker-tests-admin-key"))
    begun, stopped, loaded = threading.Event(), threading.Event(), threading.Event()

    def load(_name: str) -> HashedEmbedder:
        begun.set()
        assert stopped.wait(SECONDS)
        loaded.set()
        return HashedEmbedder()

    monkeypatch.setattr(services.embedders, "get", load)
    worker = Worker(services)
    worker.start()
    assert begun.wait(SECONDS)
    threading.Timer(0.2, stopped.set).start()
    worker.stop()
    assert loaded.is_set()
    services.close()
