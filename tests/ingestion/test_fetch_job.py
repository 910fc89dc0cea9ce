"""A URL becomes a document by the one write path, is fetched again when it is time, and embeds nothing twice."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.catalog.job import Job
from app.catalog.sources import Source
from app.domain import Document
from app.errors import Conflict, EmbeddingUnavailable, NotFound, QueueFull, UrlBlocked
from app.inference.embedders.hashed import HashedEmbedder
from app.ingestion.collections import create_collection
from app.ingestion.fetch_job import run_fetch
from app.ingestion.refresh import FetchRequest, accept_fetch, id_of_url, queue_refresh, refresh_due
from app.ingestion.submission import Submission
from app.settings import Settings
from app.telemetry import counters
from app.worker import Worker

SECONDS = 60
HTML = {"Content-Type": "text/html; charset=utf-8"}


class Stage:
    """Services with a collection and a running worker, which may fetch from the site."""

    def __init__(self, services: Services, site: Any) -> None:
        self.services, self.site = services, site
        self.url = f"http://127.0.0.1:{site.port}/leave"
        self.collection: Collection = create_collection(
            services.ingestion, "c", title=None, description=None, settings={}
        )

    def page(self, text: str, **headers: str) -> None:
        self.site.pages["/leave"] = self.site.Page(f"<p>{text}</p>".encode(), headers=HTML | headers)

    def fetch(self, **more: Any) -> Job:
        return self.ended(self.accept(**more))

    def accept(self, **more: Any) -> Job:
        wanted = FetchRequest(**{"url": self.url, "document_id": "a", **more})
        job = accept_fetch(self.services.ingestion, self.collection, wanted).job
        assert job is not None
        return job

    def refresh(self) -> Job:
        source = self.source
        assert source is not None
        return self.ended(queue_refresh(self.services.ingestion, self.collection, source))

    def ended(self, job: Job) -> Job:
        job = self.services.jobs.wait(job.id, timeout=SECONDS)
        assert job.is_finished
        return job

    @property
    def document(self) -> Document | None:
        with self.services.opened.get(self.collection.id) as opened:
            return opened.store.document("a")

    @property
    def text(self) -> str:
        with self.services.opened.get(self.collection.id) as opened:
            return opened.store.text("a", 0, None).strip()

    @property
    def source(self) -> Source | None:
        return self.services.ingestion.sources.of_document(self.collection.id, "a")


def settings_for(folder: Path, **more: Any) -> Settings:
    given = {"data": folder / "data", "embedder": "hashed", "admin_key": "fetch-tests-admin-key", "fetch": True, **more}
    return Settings(**{"fetch_allowed_networks": "127.0.0.1/32", **given})


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = build_services(settings_for(tmp_path))
    yield made
    made.close()


@pytest.fixture
def stage(services: Services, site: Any) -> Iterator[Stage]:
    with Worker(services, warms_up=False).running():
        yield Stage(services, site)


@pytest.fixture
def idle(services: Services, site: Any) -> Stage:
    """The same without a worker."""
    return Stage(services, site)


def outcome(job: Job) -> Any:
    assert (job.state, job.error) == ("succeeded", None)
    assert job.result is not None
    return job.result["outcome"], job.result["chunks"]["embedded"]


def failed(job: Job) -> str:
    assert job.state == "failed"
    assert job.error is not None
    return str(job.error["code"])


def embedded() -> int:
    return counters.snapshot().get("embedding_texts", 0)


def test_a_url_becomes_a_document_with_its_type_its_name_and_where_it_came_from(stage: Stage) -> None:
    stage.page("320 working days")
    job = stage.fetch(title="Leave", metadata={"team": "hr"})
    assert outcome(job) == ("created", 1)
    assert job.result is not None
    assert job.result["url"] == stage.url
    assert {stage["name"] for stage in job.stages} >= {"fetch", "load", "embed", "write", "index"}
    document = stage.document
    assert document is not None
    assert (document.state, document.title, document.filename) == ("ready", "Leave", "leave")
    assert document.metadata == {"team": "hr", "url": stage.url}
    assert document.media_type == "text/html"
    assert stage.text == "320 working days"


def test_the_url_in_the_metadata_is_where_the_document_was_found_unless_the_caller_named_another(stage: Stage) -> None:
    stage.page("x")
    stage.site.pages["/old"] = stage.site.Page(status=301, headers={"Location": "/leave"})
    stage.fetch(url=stage.url.replace("/leave", "/old"))
    assert stage.document is not None
    assert stage.document.metadata == {"url": stage.url}
    stage.fetch(metadata={"url": "https://public.example/leave"})
    assert stage.document.metadata == {"url": "https://public.example/leave"}


def test_what_has_not_changed_is_neither_sent_nor_embedded_again(stage: Stage) -> None:
    def page(visit: Any) -> Any:
        is_known = visit.headers.get("if-none-match") == '"1"'
        body = b"" if is_known else b"<p>alpha</p>"
        return stage.site.Page(body, 304 if is_known else 200, HTML | {"ETag": '"1"'})

    stage.site.pages["/leave"] = page
    stage.fetch(metadata={"team": "hr"})
    before, texts = stage.document, embedded()
    for again in (stage.fetch(metadata={"team": "hr"}), stage.refresh()):
        assert outcome(again) == ("unchanged", 0)
    assert embedded() == texts
    assert stage.document == before
    assert ["if-none-match" in visit.headers for visit in stage.site.visits if visit.path == "/leave"] == [
        False,
        True,
        True,
    ]


def test_the_same_bytes_without_validators_are_unchanged_too(stage: Stage) -> None:
    stage.page("alpha")
    stage.fetch()
    assert outcome(stage.refresh()) == ("unchanged", 0)
    stage.page("beta")
    assert outcome(stage.refresh())[0] == "updated"
    assert stage.text == "beta"
    source = stage.source
    assert source is not None
    assert (source.status, source.failures, source.error) == ("ok", 0, None)
    assert source.changed_at == source.fetched_at


def test_a_document_that_was_put_meanwhile_is_not_taken_for_the_one_that_was_fetched(stage: Stage) -> None:
    def page(visit: Any) -> Any:
        assert "if-none-match" not in visit.headers
        return stage.site.Page(b"<p>alpha</p>", headers=HTML | {"ETag": '"1"'})

    stage.site.pages["/leave"] = page
    stage.fetch()
    original = stage.services.ingestion.originals(stage.collection.id).write(b"ours")
    put = stage.services.ingestion.submit(stage.collection, Submission("a", original, media_type="text/plain"))
    assert put.job is not None
    stage.ended(put.job)
    assert outcome(stage.fetch())[0] == "updated"
    assert stage.text == "alpha"


def test_a_refresh_keeps_what_was_changed_by_hand(stage: Stage) -> None:
    stage.page("alpha")
    stage.fetch(title="Theirs", metadata={"team": "hr"})
    patched = stage.services.ingestion.update(stage.collection, "a", title="Ours", metadata={"year": 2026})
    if patched.job is not None:
        stage.ended(patched.job)
    before = stage.document
    assert outcome(stage.refresh()) == ("unchanged", 0)
    assert stage.document == before
    stage.page("beta")
    assert outcome(stage.refresh())[0] == "updated"
    after = stage.document
    assert after is not None
    assert (after.title, after.metadata) == ("Ours", {"team": "hr", "year": 2026, "url": stage.url})


@pytest.mark.parametrize(("status", "code", "told"), [(404, "url_not_found", "gone"), (500, "fetch_failed", "failed")])
def test_a_url_that_fails_is_reported_and_its_document_stays(stage: Stage, status: int, code: str, told: str) -> None:
    stage.page("alpha")
    stage.fetch(refresh_seconds=3600)
    stage.site.pages["/leave"] = stage.site.Page(status=status)
    assert failed(stage.refresh()) == code
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
    assert outcome(stage.refresh()) == ("unchanged", 0)
    document, source = stage.document, stage.source
    assert document is not None
    assert source is not None
    assert (document.error, source.error, source.status) == (None, None, "ok")


def test_a_url_that_never_came_leaves_a_failed_document_that_can_be_retried(stage: Stage) -> None:
    job = stage.fetch(title="Leave", metadata={"team": "hr"})
    assert failed(job) == "url_not_found"
    document = stage.document
    assert document is not None
    assert (document.state, document.version) == ("failed", 0)
    stage.page("alpha")
    assert outcome(stage.ended(stage.services.jobs.retry(job.id)))[0] == "created"
    document = stage.document
    assert document is not None
    assert (document.title, document.metadata) == ("Leave", {"team": "hr", "url": stage.url})


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.2/", "file:///etc/passwd"]
)
def test_a_redirect_that_leads_inside_fails_the_document(stage: Stage, location: str) -> None:
    stage.site.pages["/leave"] = stage.site.Page(status=302, headers={"Location": location})
    job = stage.fetch()
    assert failed(job) == "url_blocked"
    assert job.error is not None
    assert (job.error["status"], job.error["stage"]) == (422, "fetch")


def test_what_cannot_be_read_fails_as_in_an_upload(stage: Stage) -> None:
    stage.site.pages["/leave"] = stage.site.Page(b"%PDF-1.4 noise" + bytes(70))
    assert failed(stage.fetch()) == "damaged_document"
    stage.site.pages["/leave"] = stage.site.Page(b"")
    assert failed(stage.fetch()) == "empty_document"
    source = stage.source
    assert source is not None
    assert (source.status, source.failures) == ("failed", 2)


def test_nothing_is_left_in_the_spool(stage: Stage) -> None:
    stage.page("alpha")
    stage.fetch()
    stage.site.pages["/leave"] = stage.site.Page(status=500)
    stage.fetch()
    assert list(stage.services.ingestion.spool.iterdir()) == []


def test_a_later_attempt_does_not_fetch_again(services: Services, idle: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaking(HashedEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            raise SystemExit

    idle.page("alpha")
    job = idle.accept()
    claimed = services.jobs.claim("dead")
    assert claimed is not None
    with monkeypatch.context() as broken, services.opened.get(idle.collection.id) as opened:
        broken.setattr(services.embedders, "get", lambda _name: Breaking())
        with pytest.raises(SystemExit):
            run_fetch(services.ingestion, opened, claimed, Silent(job.id))
        # The bytes are safe, although they are old and no version names them yet.
        (original,) = (opened.folder / "originals").iterdir()
        os.utime(original, (0, 0))
        assert services.ingestion.sweep_originals(idle.collection.id, opened) == 0
    services.jobs.release_owners(lambda owner: owner == "dead")
    idle.site.pages.clear()
    with Worker(services, warms_up=False).running():
        assert outcome(idle.ended(job))[0] == "created"
    assert idle.site.paths() == ["/leave"]


class Silent:
    """A report that hears nothing."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None: ...

    def advance(self, done: int) -> None: ...


def test_embedding_that_fails_leaves_the_version_that_answers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Down(HashedEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            raise EmbeddingUnavailable("down")

    stage.page("alpha")
    stage.fetch()
    stage.page("beta", ETag='"2"')
    with monkeypatch.context() as broken:
        broken.setattr(stage.services.embedders, "get", lambda _name: Down())
        assert failed(stage.refresh()) == "embedding_unavailable"
    assert stage.text == "alpha"
    assert outcome(stage.refresh())[0] == "updated"


# --- when ---


def test_a_source_that_is_due_is_fetched_once(services: Services, idle: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    idle.page("alpha")
    with Worker(services, warms_up=False).running():
        idle.fetch(refresh_seconds=60)
    assert refresh_due(services.ingestion) == 0
    source = idle.source
    assert source is not None
    assert source.next_at is not None
    monkeypatch.setattr(services.ingestion.sources, "_clock", lambda: source.next_at)
    assert [refresh_due(services.ingestion), refresh_due(services.ingestion)] == [1, 0]
    (job,) = services.jobs.unfinished(idle.collection.id, "a")
    assert queue_refresh(services.ingestion, idle.collection, source).id == job.id


def test_a_full_queue_leaves_nothing_half_made(tmp_path: Path, site: Any) -> None:
    services = build_services(settings_for(tmp_path, max_queued_jobs=1))
    try:
        stage = Stage(services, site)
        stage.accept(document_id="first")
        with pytest.raises(QueueFull):
            stage.accept()
        assert (stage.document, stage.source) == (None, None)
    finally:
        services.close()


def test_a_cancelled_fetch_leaves_no_document(services: Services, idle: Stage) -> None:
    def page(_visit: Any) -> Any:
        services.jobs.cancel(job.id)
        return idle.site.Page(b"<p>alpha</p>", headers=HTML)

    idle.site.pages["/leave"] = page
    job = idle.accept()
    with Worker(services, warms_up=False).running():
        assert idle.ended(job).state == "cancelled"
    assert idle.document is None


def test_a_deleted_document_does_not_come_back(stage: Stage) -> None:
    stage.page("alpha")
    stage.fetch(refresh_seconds=60)
    stage.services.ingestion.delete(stage.collection, ["a"])
    assert (stage.document, stage.source) == (None, None)


def test_a_refresh_whose_source_was_forgotten_does_nothing(services: Services, idle: Stage) -> None:
    idle.page("alpha")
    with Worker(services, warms_up=False).running():
        idle.fetch()
    source = idle.source
    assert source is not None
    job = queue_refresh(services.ingestion, idle.collection, source)
    services.ingestion.sources.delete(idle.collection.id, source.id)
    with Worker(services, warms_up=False).running():
        assert idle.ended(job).state == "cancelled"
    assert idle.text == "alpha"


def test_without_the_setting_nothing_is_fetched(tmp_path: Path, site: Any) -> None:
    services = build_services(settings_for(tmp_path, fetch=False))
    try:
        with pytest.raises(Conflict) as refusal:
            Stage(services, site).accept()
        assert refusal.value.code == "fetch_disabled"
        assert "FOOTNOTE_FETCH=1" in (refusal.value.hint or "")
        assert refresh_due(services.ingestion) == 0
    finally:
        services.close()


def test_a_url_that_says_where_it_leads_is_refused_at_the_door(idle: Stage) -> None:
    for url in ("file:///etc/passwd", "http://0x7f.2/", "http://[::ffff:127.0.0.2]/"):
        with pytest.raises(UrlBlocked):
            idle.accept(url=url)
    assert idle.document is None


def test_a_collection_that_is_gone_takes_no_url(services: Services, idle: Stage) -> None:
    services.collections.delete("c")
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
