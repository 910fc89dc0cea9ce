"""URLs are accepted as documents, and fetched again when it is time or when asked."""

import threading
from typing import Any

import pytest

from app.errors import Conflict, NotFound, QueueFull, UrlBlocked
from app.ingestion.chunkers.options import completed_chunking
from app.ingestion.refresh import id_of_url, queue_refresh, refresh_due
from app.worker import Worker

HTML = {"Content-Type": "text/html; charset=utf-8"}


def test_a_source_that_is_due_is_fetched_once(idle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    idle.page("alpha")
    with Worker(idle.services, warms_up=False).running():
        idle.fetch(refresh_seconds=60)
    assert refresh_due(idle.services.ingestion) == 0
    source = idle.source
    assert source is not None
    assert source.next_at is not None
    monkeypatch.setattr(idle.services.ingestion.sources, "_clock", lambda: source.next_at)
    assert [refresh_due(idle.services.ingestion), refresh_due(idle.services.ingestion)] == [1, 0]
    (job,) = idle.services.jobs.unfinished(idle.collection.id, "a")
    assert queue_refresh(idle.services.ingestion, idle.collection, source).id == job.id


def test_the_worker_fetches_what_is_due(idle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    came_back = threading.Event()

    def page(_visit: Any) -> Any:
        if idle.site.paths() == ["/leave", "/leave"]:
            came_back.set()
        return idle.site.Page(b"<p>alpha</p>", headers=HTML)

    idle.site.pages["/leave"] = page
    with Worker(idle.services, warms_up=False).running():
        idle.fetch(refresh_seconds=60)
    later = idle.source.next_at
    monkeypatch.setattr(idle.services.ingestion.sources, "_clock", lambda: later)
    monkeypatch.setattr("app.worker.SOURCES_SECONDS", 0.01)
    with Worker(idle.services, warms_up=False).running():
        assert came_back.wait(60)


def test_a_full_queue_leaves_nothing_half_made(fetch_stage: Any) -> None:
    stage = fetch_stage(max_queued_jobs=1)
    stage.accept(document_id="first")
    with pytest.raises(QueueFull):
        stage.accept()
    assert (stage.document, stage.source) == (None, None)


def test_a_refused_fetch_leaves_the_source_as_it_was(fetch_stage: Any) -> None:
    stage = fetch_stage(max_queued_jobs=1)
    stage.accept(metadata={"team": "hr"})
    before = stage.source
    with pytest.raises(QueueFull):
        stage.accept(metadata={"team": "legal"})
    assert stage.source == before


def test_a_cancelled_fetch_leaves_no_document(idle: Any) -> None:
    def page(_visit: Any) -> Any:
        idle.services.jobs.cancel(job.id)
        return idle.site.Page(b"<p>alpha</p>", headers=HTML)

    idle.site.pages["/leave"] = page
    job = idle.accept()
    with Worker(idle.services, warms_up=False).running():
        assert idle.ended(job).state == "cancelled"
    assert idle.document is None


def test_a_source_that_never_came_is_made_as_it_was_wanted_when_it_comes(stage: Any) -> None:
    chunking = completed_chunking({"strategy": "fixed", "size": 5})
    assert stage.failure(stage.fetch(title="Leave", metadata={"team": "hr"}, chunking=chunking)) == "url_not_found"
    stage.page("alpha beta")
    stage.outcome(stage.refresh())
    document = stage.document
    assert document is not None
    assert (document.title, document.chunking, document.chunk_count) == ("Leave", chunking, 2)
    assert document.metadata == {"team": "hr", "url": stage.url}
    stage.page("gamma delta")
    stage.outcome(stage.refresh())
    assert stage.document.chunking == chunking


def test_a_deleted_document_does_not_come_back(stage: Any) -> None:
    stage.page("alpha")
    stage.fetch(refresh_seconds=60)
    stage.services.ingestion.delete(stage.collection, ["a"])
    assert (stage.document, stage.source) == (None, None)


def test_a_refresh_whose_source_was_forgotten_does_nothing(idle: Any) -> None:
    idle.page("alpha")
    with Worker(idle.services, warms_up=False).running():
        idle.fetch()
    source = idle.source
    assert source is not None
    job = queue_refresh(idle.services.ingestion, idle.collection, source)
    idle.services.ingestion.sources.delete(idle.collection.id, source.id)
    with Worker(idle.services, warms_up=False).running():
        assert idle.ended(job).state == "cancelled"
    assert idle.text == "alpha"


def test_without_the_setting_nothing_is_fetched(fetch_stage: Any) -> None:
    stage = fetch_stage(fetch=False)
    with pytest.raises(Conflict) as refusal:
        stage.accept()
    assert refusal.value.code == "fetch_disabled"
    assert "FOOTNOTE_FETCH=1" in (refusal.value.hint or "")
    assert refresh_due(stage.services.ingestion) == 0


def test_a_url_that_says_where_it_leads_is_refused_at_the_door(idle: Any) -> None:
    for url in ("file:///etc/passwd", "http://0x7f.2/", "http://[::ffff:127.0.0.2]/"):
        with pytest.raises(UrlBlocked):
            idle.accept(url=url)
    assert idle.document is None


def test_a_collection_that_is_gone_takes_no_url(idle: Any) -> None:
    idle.services.collections.delete("c")
    with pytest.raises(NotFound):
        idle.accept()


@pytest.mark.parametrize(
    ("url", "beginning"),
    [
        ("https://site.example/", "site.example-"),
        ("https://site.example:8443/docs/Leave%20policy.html?v=2", "site.example_8443_docs_Leave_policy.html-"),
        ("https://site.example/年假", "site.example_年假-"),
    ],
)
def test_an_id_made_of_a_url_is_readable_and_its_own(url: str, beginning: str) -> None:
    assert id_of_url(url).startswith(beginning)
    assert id_of_url(url) != id_of_url(url + "?x")
    assert len(id_of_url("https://site.example/" + "a" * 4000)) <= 256
