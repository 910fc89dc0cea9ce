"""The verb `ingest` on real services: writers that meet lose nothing of each other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.domain import Document
from app.errors import Overtaken, PreconditionFailed
from app.ingestion.collections import create_collection
from app.ingestion.submission import Precondition, Submission
from app.settings import Settings
from app.stores.sqlite import SqliteStore
from app.worker import Worker

SECONDS = 60


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(Settings(data=tmp_path / "data", embedder="hashed", admin_key="ingest-tests-admin-key"))
    yield made
    made.close()


@pytest.fixture
def collection(services: Services) -> Collection:
    return create_collection(services.ingestion, "c", title=None, description=None, settings={})


@pytest.fixture
def ready(services: Services, collection: Collection) -> Document:
    """A document with one version."""
    return put(services, collection, "alpha", metadata={"team": "hr"})


def send(services: Services, collection: Collection, text: str, **more: Any) -> Any:
    original = services.ingestion.originals(collection.id).write(text.encode())
    return services.ingestion.submit(collection, Submission("a", original, media_type="text/plain", **more))


def put(services: Services, collection: Collection, text: str, **more: Any) -> Document:
    with Worker(services).running():
        submitted = send(services, collection, text, **more)
        if submitted.job is not None:
            assert services.jobs.wait(submitted.job.id, timeout=SECONDS).state == "succeeded"
    return document(services, collection)


def document(services: Services, collection: Collection) -> Document:
    with services.opened.get(collection.id) as opened:
        found: Document | None = opened.store.document("a")
    assert found is not None
    return found


def interrupt(monkeypatch: pytest.MonkeyPatch, method: str, by: Callable[[], object]) -> None:
    """Let another writer come between the reading of a document and its next writing."""
    real = getattr(SqliteStore, method)
    once = iter([by])

    def interrupted(self: SqliteStore, *args: Any, **more: Any) -> Any:
        other = next(once, None)
        if other is not None:
            other()
        return real(self, *args, **more)

    monkeypatch.setattr(SqliteStore, method, interrupted)


def test_two_patches_of_different_members_are_both_there(
    services: Services, collection: Collection, ready: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patch(**metadata: Any) -> None:
        services.ingestion.update(collection, ready.id, metadata=metadata)

    interrupt(monkeypatch, "update_document", lambda: patch(theirs=1))
    patch(mine=2)
    assert document(services, collection).metadata == {"team": "hr", "theirs": 1, "mine": 2}


def test_of_two_patches_with_one_etag_the_later_is_refused(
    services: Services, collection: Collection, ready: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patch(**metadata: Any) -> None:
        services.ingestion.update(
            collection, ready.id, metadata=metadata, precondition=Precondition(if_match=ready.etag)
        )

    interrupt(monkeypatch, "update_document", lambda: patch(theirs=1))
    with pytest.raises(PreconditionFailed):
        patch(mine=2)
    assert document(services, collection).metadata == {"team": "hr", "theirs": 1}


def test_a_put_of_new_metadata_keeps_its_precondition_until_it_is_written(
    services: Services, collection: Collection, ready: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ready.content_hash is not None
    originals = services.ingestion.originals(collection.id)
    mine = Submission("a", originals.write(b"alpha"), media_type="text/plain", metadata={"mine": 2})
    interrupt(
        monkeypatch,
        "update_document",
        lambda: services.ingestion.update(collection, "a", metadata={"theirs": 1}),
    )
    with pytest.raises(PreconditionFailed):
        services.ingestion.submit(collection, mine, Precondition(if_match=ready.etag))
    assert document(services, collection).metadata == {"team": "hr", "theirs": 1}


def test_a_deletion_with_an_etag_spares_a_document_that_changed_meanwhile(
    services: Services, collection: Collection, ready: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(
        monkeypatch,
        "delete_documents",
        lambda: services.ingestion.update(collection, "a", metadata={"theirs": 1}),
    )
    with pytest.raises(Overtaken):
        services.ingestion.delete(collection, ["a"], Precondition(if_match=ready.etag))
    assert document(services, collection).metadata == {"team": "hr", "theirs": 1}


def test_a_patch_never_brings_back_the_text_before_one_that_was_in_work(
    services: Services, collection: Collection, ready: Document
) -> None:
    newer = send(services, collection, "beta")
    patched = services.ingestion.update(collection, ready.id, metadata={"year": 2026})
    with Worker(services).running():
        assert services.jobs.wait(newer.job.id, timeout=SECONDS).state == "succeeded"
        assert patched.job is not None
        job = services.jobs.wait(patched.job.id, timeout=SECONDS)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("failed", "precondition_failed")
    with services.opened.get(collection.id) as opened:
        assert opened.store.text("a", 0, None) == "beta"
