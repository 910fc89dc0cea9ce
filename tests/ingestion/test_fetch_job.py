"""A URL becomes a document by the one write path, is fetched again when it is time, and embeds nothing twice."""

import os
from typing import Any

import pytest

from app.errors import EmbeddingUnavailable
from app.inference.embedders.hashed import HashedEmbedder
from app.ingestion.fetch_job import run_fetch
from app.ingestion.submission import Submission
from app.telemetry import counters
from app.worker import Worker

SECONDS = 60
HTML = {"Content-Type": "text/html; charset=utf-8"}


def embedded() -> int:
    return counters.snapshot().get("embedding_texts", 0)


def test_a_url_becomes_a_document_with_its_type_its_name_and_where_it_came_from(stage: Any) -> None:
    stage.page("320 working days")
    job = stage.fetch(title="Leave", metadata={"team": "hr"})
    assert stage.outcome(job) == ("created", 1)
    assert job.result is not None
    assert job.result["url"] == stage.url
    assert {stage["name"] for stage in job.stages} >= {"fetch", "load", "embed", "write", "index"}
    document = stage.document
    assert document is not None
    assert (document.state, document.title, document.filename) == ("ready", "Leave", "leave")
    assert document.metadata == {"team": "hr", "url": stage.url}
    assert document.media_type == "text/html"
    assert stage.text == "320 working days"


def test_the_url_in_the_metadata_is_where_the_document_was_found_unless_the_caller_named_another(stage: Any) -> None:
    stage.page("x")
    stage.site.pages["/old"] = stage.site.Page(status=301, headers={"Location": "/leave"})
    stage.fetch(url=stage.url.replace("/leave", "/old"))
    assert stage.document is not None
    assert stage.document.metadata == {"url": stage.url}
    stage.fetch(metadata={"url": "https://public.example/leave"})
    assert stage.document.metadata == {"url": "https://public.example/leave"}


def test_what_has_not_changed_is_neither_sent_nor_embedded_again(stage: Any) -> None:
    def page(visit: Any) -> Any:
        is_known = visit.headers.get("if-none-match") == '"1"'
        body = b"" if is_known else b"<p>alpha</p>"
        return stage.site.Page(body, 304 if is_known else 200, HTML | {"ETag": '"1"'})

    stage.site.pages["/leave"] = page
    stage.fetch(metadata={"team": "hr"})
    before, texts = stage.document, embedded()
    for again in (stage.fetch(metadata={"team": "hr"}), stage.refresh()):
        assert stage.outcome(again) == ("unchanged", 0)
    assert embedded() == texts
    assert stage.document == before
    assert ["if-none-match" in visit.headers for visit in stage.site.visits if visit.path == "/leave"] == [
        False,
        True,
        True,
    ]


def test_the_same_bytes_without_validators_are_unchanged_too(stage: Any) -> None:
    stage.page("alpha")
    stage.fetch()
    assert stage.outcome(stage.refresh()) == ("unchanged", 0)
    stage.page("beta")
    assert stage.outcome(stage.refresh())[0] == "updated"
    assert stage.text == "beta"
    source = stage.source
    assert source is not None
    assert (source.status, source.failures, source.error) == ("ok", 0, None)
    assert source.changed_at == source.fetched_at


def test_a_document_that_was_put_meanwhile_is_not_taken_for_the_one_that_was_fetched(stage: Any) -> None:
    def page(visit: Any) -> Any:
        assert "if-none-match" not in visit.headers
        return stage.site.Page(b"<p>alpha</p>", headers=HTML | {"ETag": '"1"'})

    stage.site.pages["/leave"] = page
    stage.fetch()
    original = stage.services.ingestion.originals(stage.collection.id).write(b"ours")
    put = stage.services.ingestion.submit(stage.collection, Submission("a", original, media_type="text/plain"))
    assert put.job is not None
    stage.ended(put.job)
    assert stage.outcome(stage.fetch())[0] == "updated"
    assert stage.text == "alpha"


def test_a_refresh_keeps_what_was_changed_by_hand(stage: Any) -> None:
    stage.page("alpha")
    stage.fetch(title="Theirs", metadata={"team": "hr"})
    patched = stage.services.ingestion.update(stage.collection, "a", title="Ours", metadata={"year": 2026})
    if patched.job is not None:
        stage.ended(patched.job)
    before = stage.document
    assert stage.outcome(stage.refresh()) == ("unchanged", 0)
    assert stage.document == before
    stage.page("beta")
    assert stage.outcome(stage.refresh())[0] == "updated"
    after = stage.document
    assert after is not None
    assert (after.title, after.metadata) == ("Ours", {"team": "hr", "year": 2026, "url": stage.url})


@pytest.mark.parametrize(("status", "code", "told"), [(404, "url_not_found", "gone"), (500, "fetch_failed", "failed")])
def test_a_url_that_fails_is_reported_and_its_document_stays(stage: Any, status: int, code: str, told: str) -> None:
    stage.page("alpha")
    stage.fetch(refresh_seconds=3600)
    stage.site.pages["/leave"] = stage.site.Page(status=status)
    assert stage.failure(stage.refresh()) == code
    document, source = stage.document, stage.source
    assert document is not None
    assert source is not None
    assert (document.state, stage.text) == ("ready", "alpha")
    assert document.error is not None
    assert document.error["code"] == code
    assert (source.status, source.failures) == (told, 1)
    assert source.error is not None
    assert source.error["code"] == code
    stage.page("alpha")
    assert stage.outcome(stage.refresh()) == ("unchanged", 0)
    document, source = stage.document, stage.source
    assert document is not None
    assert source is not None
    assert (document.error, source.error, source.status) == (None, None, "ok")


def test_a_url_that_never_came_leaves_a_failed_document_that_can_be_retried(stage: Any) -> None:
    job = stage.fetch(title="Leave", metadata={"team": "hr"})
    assert stage.failure(job) == "url_not_found"
    document = stage.document
    assert document is not None
    assert (document.state, document.version) == ("failed", 0)
    stage.page("alpha")
    assert stage.outcome(stage.ended(stage.services.jobs.retry(job.id)))[0] == "created"
    document = stage.document
    assert document is not None
    assert (document.title, document.metadata) == ("Leave", {"team": "hr", "url": stage.url})


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.2/", "file:///etc/passwd"]
)
def test_a_redirect_that_leads_inside_fails_the_document(stage: Any, location: str) -> None:
    stage.site.pages["/leave"] = stage.site.Page(status=302, headers={"Location": location})
    job = stage.fetch()
    assert stage.failure(job) == "url_blocked"
    assert job.error is not None
    assert (job.error["status"], job.error["stage"]) == (422, "fetch")


def test_what_cannot_be_read_fails_as_in_an_upload(stage: Any) -> None:
    stage.site.pages["/leave"] = stage.site.Page(b"%PDF-1.4 noise" + bytes(70))
    assert stage.failure(stage.fetch()) == "damaged_document"
    stage.site.pages["/leave"] = stage.site.Page(b"")
    assert stage.failure(stage.fetch()) == "empty_document"
    source = stage.source
    assert source is not None
    assert (source.status, source.failures) == ("failed", 2)


def test_nothing_is_left_in_the_spool(stage: Any) -> None:
    stage.page("alpha")
    stage.fetch()
    stage.site.pages["/leave"] = stage.site.Page(status=500)
    stage.fetch()
    assert list(stage.services.ingestion.spool.iterdir()) == []


def test_a_later_attempt_does_not_fetch_again(idle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaking(HashedEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            raise SystemExit

    idle.page("alpha")
    job = idle.accept()
    claimed = idle.services.jobs.claim("dead")
    assert claimed is not None
    with monkeypatch.context() as broken, idle.services.opened.get(idle.collection.id) as opened:
        broken.setattr(idle.services.embedders, "get", lambda _name: Breaking())
        with pytest.raises(SystemExit):
            run_fetch(idle.services.ingestion, opened, claimed, Silent(job.id))
        # The bytes are safe, although they are old and no version names them yet.
        (original,) = (opened.folder / "originals").iterdir()
        os.utime(original, (0, 0))
        assert idle.services.ingestion.sweep_originals(idle.collection.id, opened) == 0
    idle.services.jobs.release_owners(lambda owner: owner == "dead")
    idle.site.pages.clear()
    with Worker(idle.services, warms_up=False).running():
        assert idle.outcome(idle.ended(job))[0] == "created"
    assert idle.site.paths() == ["/leave"]


class Silent:
    """A report that hears nothing."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None: ...

    def advance(self, done: int) -> None: ...


def test_embedding_that_fails_leaves_the_version_that_answers(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Down(HashedEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            raise EmbeddingUnavailable("down")

    stage.page("alpha")
    stage.fetch()
    stage.page("beta", ETag='"2"')
    with monkeypatch.context() as broken:
        broken.setattr(stage.services.embedders, "get", lambda _name: Down())
        assert stage.failure(stage.refresh()) == "embedding_unavailable"
    assert stage.text == "alpha"
    assert stage.outcome(stage.refresh())[0] == "updated"
