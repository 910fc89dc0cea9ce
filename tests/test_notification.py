"""Events reach real receivers, signed, and again until they are taken."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any, get_args

import pytest

from app.api.schemas.webhooks import EventName
from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.job import Job
from app.catalog.jobs import Jobs
from app.catalog.webhook import Delivery, Event, Webhook
from app.catalog.webhooks import Webhooks
from app.ingestion.guarded_http import GuardedHttp
from app.notification import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Notifier, announce_end

DECISION = Path(__file__).parents[1] / "docs" / "decisions" / "0012-fetching.md"
NOW = 1_900_000_000
RESULT = {"outcome": "created", "version": 1, "etag": '"e"', "chunks": {"total": 1}, "warnings": []}


class Stage:
    """A catalog with one collection, its webhook, and a notifier that may reach the site only."""

    def __init__(self, database: Database, site: Any, **more: Any) -> None:
        self.site = site
        self.webhooks = Webhooks(database)
        self.collection = Collections(database).create("handbook", settings={})
        self.webhook = self.webhooks.create(self.collection.id, f"{site.url}/hook", get_args(EventName))
        self.http = GuardedHttp([ip_network("127.0.0.1")], resolve=site.addresses)
        self.notifier = self.notify_with(self.http, **more)

    def notify_with(self, http: GuardedHttp, **more: Any) -> Notifier:
        given = {"timeout_seconds": 5, "most_attempts": 3, "retention_days": 7, "clock": lambda: NOW, **more}
        return Notifier(self.webhooks, http, **given)

    def ping(self, webhook: Webhook | None = None) -> None:
        self.webhooks.ping(webhook or self.webhook, "handbook", Event("ping", {"text": "年假"}))

    def delivery(self) -> Delivery:
        return self.webhooks.deliveries(self.webhook.id, limit=1)[0][0]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "catalog.db")
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def stage(database: Database, site: Any) -> Stage:
    return Stage(database, site)


def test_a_delivery_is_a_signed_post_of_json(stage: Stage) -> None:
    stage.site.pages["/hook"] = stage.site.Page(status=204)
    stage.ping()
    assert stage.notifier.deliver_next()
    (visit,) = stage.site.visits
    assert (visit.method, visit.path, visit.headers["content-type"]) == ("POST", "/hook", "application/json")
    body = json.loads(visit.body)
    assert body == stage.delivery().payload
    assert body["data"] == {"text": "年假"}
    assert visit.headers["footnote-event"] == "ping"
    assert visit.headers["footnote-delivery"] == stage.delivery().id
    expected = hmac.new(stage.webhook.secret.encode(), f"{NOW}.".encode() + visit.body, hashlib.sha256).hexdigest()
    assert visit.headers["footnote-signature"] == f"t={NOW},v1={expected}"
    assert (stage.delivery().state, stage.delivery().status) == ("delivered", 204)
    assert not stage.notifier.deliver_next()


def test_the_documented_snippet_verifies_a_delivery_and_nothing_else(stage: Stage) -> None:
    snippet = re.search(r"```python\n(def verified.*?)```", DECISION.read_text("utf-8"), re.DOTALL)
    assert snippet is not None
    names: dict[str, Any] = {}
    exec("import hashlib, hmac, time\n" + snippet.group(1), names)
    stage.site.pages["/hook"] = stage.site.Page()
    stage.ping()
    stage.notifier.deliver_next()
    sent = stage.site.visits[0]
    header, secret = sent.headers["footnote-signature"], stage.webhook.secret
    verified = names["verified"]
    assert verified(secret, header, sent.body, now=NOW + 10)
    assert not verified(secret, header, sent.body + b" ", now=NOW)
    assert not verified("whsec_other", header, sent.body, now=NOW)
    assert not verified(secret, header, sent.body, now=NOW + 3600)
    assert not verified(secret, header.replace(f"t={NOW}", f"t={NOW + 1}"), sent.body, now=NOW)
    assert not verified(secret, "", sent.body, now=NOW)


@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_any_answer_but_2xx_is_tried_again_later_each_time(database: Database, site: Any, status: int) -> None:
    stage = Stage(database, site)
    site.pages["/hook"] = site.Page(b"words of the receiver", status, {"Location": "http://127.0.0.2/"})
    stage.ping()
    assert stage.notifier.deliver_next()
    waiting = stage.delivery()
    assert (waiting.state, waiting.attempts, waiting.status) == ("pending", 1, status)
    assert waiting.error == f"the receiver answered {status}"
    assert not stage.notifier.deliver_next()
    assert len(site.visits) == 1


def test_pauses_double_up_to_an_hour_and_end_with_the_last_attempt(stage: Stage) -> None:
    notifier = stage.notify_with(stage.http, most_attempts=20)
    for attempt in range(1, 20):
        longest = min(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), LONGEST_PAUSE_SECONDS)
        pause = notifier._pause(attempt)
        assert pause is not None
        assert 0.75 * longest <= pause <= longest
    assert notifier._pause(20) is None


def test_the_last_attempt_fails_for_good(database: Database, site: Any) -> None:
    stage = Stage(database, site, most_attempts=1)
    stage.ping()
    assert stage.notifier.deliver_next()
    assert (stage.delivery().state, stage.delivery().status) == ("failed", 404)


def test_a_receiver_that_hangs_up_is_not_an_end(stage: Stage) -> None:
    stage.site.pages["/hook"] = None
    stage.ping()
    assert stage.notifier.deliver_next()
    assert (stage.delivery().state, stage.delivery().status) == ("pending", None)


def test_a_receiver_that_is_gone_is_sent_nothing_more(stage: Stage) -> None:
    stage.site.pages["/hook"] = stage.site.Page(status=410)
    stage.ping()
    stage.ping()
    assert stage.notifier.deliver_next()
    assert not stage.notifier.deliver_next()
    assert [found.active for found in stage.webhooks.list(stage.collection.id, limit=10)[0]] == [False]


def test_a_receiver_whose_name_leads_inside_is_not_called(stage: Stage) -> None:
    inside = stage.notify_with(GuardedHttp(resolve=stage.site.addresses))
    stage.ping()
    assert inside.deliver_next()
    assert stage.site.visits == []
    assert "on the public Internet" in (stage.delivery().error or "")


def test_old_deliveries_are_trimmed_on_the_way(database: Database, site: Any) -> None:
    site.pages["/hook"] = site.Page()
    stage = Stage(database, site, retention_days=0)
    stage.ping()
    assert stage.notifier.deliver_next()
    stage.ping()
    stage.notifier.deliver_or_wait()
    deliveries, _ = stage.webhooks.deliveries(stage.webhook.id, limit=10)
    assert len(deliveries) == 1


# --- events ---


@dataclass
class Queue:
    """A queue of one collection whose webhook takes every event."""

    jobs: Jobs
    webhooks: Webhooks
    collection: Collection
    webhook: Webhook

    def enqueue(self, kind: str = "fetch", document_id: str | None = "a") -> Job:
        names = {"collection_id": self.collection.id, "collection": self.collection.name}
        return self.jobs.enqueue(kind, **names, document_id=document_id, payload={})

    def ended(self, state: str, error: dict[str, Any] | None = None, result: dict[str, Any] | None = None) -> None:
        job = self.jobs.claim("me")
        assert job is not None
        assert self.jobs.finish(job.id, "me", state, error=error, result=result)

    def told(self) -> dict[str, Any]:
        sent = self.webhooks.deliveries(self.webhook.id, limit=100)[0]
        return {delivery.event: delivery.payload["data"] for delivery in sent}


@pytest.fixture
def queue(database: Database) -> Queue:
    webhooks = Webhooks(database)
    collection = Collections(database).create("c", settings={})
    jobs = Jobs(database, max_queued=10, lease_seconds=0, max_attempts=1, announce=partial(announce_end, webhooks))
    webhook = webhooks.create(collection.id, "http://127.0.0.1/", get_args(EventName))
    return Queue(jobs, webhooks, collection, webhook)


def test_a_document_that_is_ready_is_told_with_its_job(queue: Queue) -> None:
    job = queue.enqueue()
    queue.ended("succeeded", result=RESULT)
    told = queue.told()
    assert told["document.ready"] == {
        "job_id": job.id,
        "kind": "fetch",
        "document_id": "a",
        "outcome": "created",
        "version": 1,
        "etag": '"e"',
        "chunks": {"total": 1},
    }
    assert told["job.finished"]["state"] == "succeeded"
    assert told["job.finished"]["result"] == RESULT


def test_a_document_that_did_not_change_is_not_ready_anew(queue: Queue) -> None:
    queue.enqueue()
    queue.ended("succeeded", result=RESULT | {"outcome": "unchanged"})
    assert list(queue.told()) == ["job.finished"]


def test_a_failure_is_told_with_its_problem(queue: Queue) -> None:
    queue.enqueue()
    queue.ended("failed", {"code": "fetch_failed"})
    told = queue.told()
    assert told["document.failed"]["error"] == {"code": "fetch_failed"}
    assert told["job.finished"]["error"] == {"code": "fetch_failed"}


def test_work_on_the_whole_collection_only_finishes(queue: Queue) -> None:
    queue.enqueue("rebuild", None)
    queue.ended("failed", {"code": "internal_error"})
    assert list(queue.told()) == ["job.finished"]


def test_a_job_that_is_cancelled_before_it_began_is_told(queue: Queue) -> None:
    queue.jobs.cancel(queue.enqueue().id)
    told = queue.told()
    assert list(told) == ["job.finished"]
    assert told["job.finished"]["state"] == "cancelled"


def test_jobs_that_end_with_their_deleted_document_are_told(queue: Queue) -> None:
    queue.enqueue()
    queue.enqueue()
    assert queue.jobs.cancel_for_document(queue.collection.id, ["a"]) == 2
    assert len(queue.webhooks.deliveries(queue.webhook.id, limit=100)[0]) == 2


def test_a_job_that_was_asked_to_stop_and_lost_its_process_is_told_once(queue: Queue) -> None:
    job = queue.enqueue()
    assert queue.jobs.claim("dies") is not None
    queue.jobs.cancel(job.id)
    assert queue.told() == {}
    assert queue.jobs.release_owners(lambda _: True) == 1
    assert queue.told()["job.finished"]["state"] == "cancelled"
    assert not queue.jobs.finish(job.id, "dies", "succeeded", result=RESULT)
    assert len(queue.webhooks.deliveries(queue.webhook.id, limit=100)[0]) == 1


def test_a_job_that_was_asked_to_stop_as_its_worker_stops_is_told(queue: Queue) -> None:
    job = queue.enqueue()
    assert queue.jobs.claim("stops") is not None
    queue.jobs.cancel(job.id)
    assert queue.jobs.requeue(job.id, "stops")
    assert queue.told()["job.finished"]["state"] == "cancelled"


def test_a_job_that_loses_too_many_processes_is_told_as_failed(queue: Queue) -> None:
    queue.enqueue()
    for process in ("first", "second"):
        assert queue.jobs.claim(process) is not None
    # The lease of the second is over; who claims next takes the job back.
    assert queue.jobs.claim("third") is None
    told = queue.told()
    assert told["document.failed"]["error"]["code"] == "job_attempts_exhausted"
    assert told["job.finished"]["state"] == "failed"


def test_a_job_that_is_queued_again_is_told_of_again_only_when_it_ends(queue: Queue) -> None:
    job = queue.enqueue()
    queue.ended("failed", {"code": "fetch_failed"})
    queue.jobs.retry(job.id)
    assert len(queue.webhooks.deliveries(queue.webhook.id, limit=100)[0]) == 2
    queue.ended("succeeded", result=RESULT)
    assert len(queue.webhooks.deliveries(queue.webhook.id, limit=100)[0]) == 4
