"""What crashes and refusals leave behind is removed, and nothing else."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.ingestion import tidying
from app.ingestion.collections import create_collection
from app.ingestion.submission import Submission
from app.ingestion.tidying import tidy
from app.settings import Settings
from app.worker import Worker

LONG_AGO = 100_000.0


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(Settings(data=tmp_path / "data", embedder="hashed", admin_key="tidying-tests-admin-key"))
    yield made
    made.close()


@pytest.fixture
def collection(services: Services) -> Collection:
    return create_collection(services.ingestion, "c", title=None, description=None, settings={})


def age(file: Path) -> None:
    old = file.stat().st_mtime - LONG_AGO
    os.utime(file, (old, old))


def store_original(services: Services, collection: Collection, data: bytes) -> Any:
    return services.ingestion.originals(collection.id).write(data)


def age_originals(services: Services, collection: Collection) -> None:
    for path in (services.settings.data / "collections" / collection.id / "originals").iterdir():
        age(path)


def originals(services: Services, collection: Collection) -> set[str]:
    return {path.name for path in (services.settings.data / "collections" / collection.id / "originals").iterdir()}


def run(services: Services) -> None:
    tidy(services.ingestion, lambda: False)


def test_an_upload_that_a_dead_process_left_is_removed_and_a_running_one_is_not(services: Services) -> None:
    left, running = services.ingestion.spool.parent / "left", services.ingestion.spool / "running"
    left.mkdir()
    for file in (left / "upload", running):
        file.write_bytes(b"x")
    run(services)
    assert not left.exists()
    assert running.exists()


def test_originals_of_documents_and_of_jobs_that_may_run_again_stay(services: Services, collection: Collection) -> None:
    refused, queued, ready = (store_original(services, collection, data) for data in (b"refused", b"queued", b"ready"))
    with Worker(services).running():
        job = services.ingestion.submit(collection, Submission("ready", ready, media_type="text/plain")).job
        assert job is not None
        assert services.jobs.wait(job.id, 60).state == "succeeded"
    services.ingestion.submit(collection, Submission("queued", queued, media_type="text/plain"))
    run(services)
    assert originals(services, collection) == {refused.sha256, queued.sha256, ready.sha256}
    age_originals(services, collection)
    run(services)
    assert originals(services, collection) == {queued.sha256, ready.sha256}


def test_an_expired_document_is_deleted_with_what_belongs_to_it(services: Services, collection: Collection) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    with Worker(services).running(), services.opened.get(collection.id) as opened:
        for name, ends in (("ends", soon), ("stays", None)):
            stored = store_original(services, collection, name.encode())
            sent = Submission(name, stored, media_type="text/plain", expires_at=ends)
            job = services.ingestion.submit(collection, sent).job
            assert job is not None
            services.jobs.wait(job.id, 60)
        opened.store.update_document(
            "ends", etag='"e"', title="", metadata={}, expires_at=datetime.now(UTC) - timedelta(seconds=1)
        )
        run(services)
        assert [document.id for document in opened.store.list_documents(None, limit=9, cursor=None).data] == ["stays"]
        assert opened.index.keyword.size() == 1


def test_a_document_whose_job_was_never_queued_says_so(
    services: Services, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with services.opened.get(collection.id) as opened:
        for name in ("orphan", "young"):
            opened.store.register_document(name, title="", metadata={}, media_type="text/plain", filename=None)
        run(services)
        assert {opened.store.document(name).state for name in ("orphan", "young")} == {"pending"}  # type: ignore[union-attr]

        class Later(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return datetime.now(UTC) + timedelta(seconds=2 * tidying.ORPHAN_SECONDS)

        monkeypatch.setattr(tidying, "datetime", Later)
        stored = store_original(services, collection, b"queued")
        services.ingestion.submit(collection, Submission("young", stored, media_type="text/plain"))
        run(services)
        orphan, young = opened.store.document("orphan"), opened.store.document("young")
    assert orphan is not None
    assert young is not None
    assert (orphan.state, (orphan.error or {})["code"]) == ("failed", "interrupted")
    assert young.state == "pending"


def test_documents_that_have_not_changed_for_max_age_days_go(
    services: Services, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Worker(services, warms_up=False).running():
        submission = Submission("d", store_original(services, collection, b"old words"))
        job = services.ingestion.submit(collection, submission).job
        assert job is not None
        services.jobs.wait(job.id, timeout=30)
    aged = replace(collection, settings={**collection.settings, "max_age_days": 2})
    monkeypatch.setattr(services.ingestion.collections, "every", lambda: iter([aged]))
    tidy(services.ingestion, lambda: False)
    with services.opened.get(collection.id) as opened:
        assert opened.store.document("d") is not None

    later = datetime.now(UTC) + timedelta(days=3)
    monkeypatch.setattr(tidying, "datetime", SimpleNamespace(now=lambda _zone: later))
    tidy(services.ingestion, lambda: False)
    with services.opened.get(collection.id) as opened:
        assert opened.store.document("d") is None


def test_originals_of_versions_that_are_no_longer_kept_go(services: Services, collection: Collection) -> None:
    with Worker(services, warms_up=False).running():
        for data in (b"first words", b"second words", b"third words"):
            job = services.ingestion.submit(collection, Submission("d", store_original(services, collection, data))).job
            assert job is not None
            services.jobs.wait(job.id, timeout=30)
    age_originals(services, collection)
    tidy(services.ingestion, lambda: False)
    assert len(originals(services, collection)) == 3

    services.ingestion.collections.update(
        collection, title=None, description=None, settings={**collection.settings, "keep_versions": 1}
    )
    tidy(services.ingestion, lambda: False)
    assert len(originals(services, collection)) == 2
