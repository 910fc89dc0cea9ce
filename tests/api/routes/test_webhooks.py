"""Webhooks at the door, and what reaches a real receiver when documents come."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.ingestion import sources

PATH = "/v1/collections/hooked"
SECONDS = 30


class Receiver:
    """Collects what is posted to a site, and lets a test wait for it."""

    def __init__(self, site: Any) -> None:
        self.site = site
        self.url = f"http://127.0.0.1:{site.port}/hook"
        self.arrived = threading.Semaphore(0)
        site.pages["/hook"] = self.take

    def take(self, _visit: Any) -> Any:
        self.arrived.release()
        return self.site.Page(status=204)

    def events(self, count: int) -> list[str]:
        for _ in range(count):
            assert self.arrived.acquire(timeout=SECONDS)
        return [visit.headers["footnote-event"] for visit in self.site.visits]


@pytest.fixture
def receiver(site: Any) -> Receiver:
    return Receiver(site)


@pytest.fixture
def client(started: Callable[..., TestClient]) -> TestClient:
    made = started(fetch_allowed_networks="127.0.0.1/32")
    assert made.put(PATH, json={}).status_code == 201
    return made


def put(client: TestClient, text: str) -> Any:
    return client.put(f"{PATH}/documents/a", json={"text": text}, headers={"Prefer": "wait=30"})


def test_a_secret_is_shown_once(client: TestClient, receiver: Receiver) -> None:
    made = client.post(f"{PATH}/webhooks", json={"url": receiver.url, "events": ["document.ready"]})
    assert made.status_code == 201, made.text
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    listed = client.get(f"{PATH}/webhooks")
    assert secret not in listed.text
    assert listed.json()["data"] == [{name: value for name, value in made.json().items() if name != "secret"}]


def test_a_replayed_creation_shows_the_same_secret_and_keeps_it_sealed(client: TestClient, receiver: Receiver) -> None:
    headers = {"Idempotency-Key": "hook"}
    first, second = (client.post(f"{PATH}/webhooks", json={"url": receiver.url}, headers=headers) for _ in range(2))
    assert first.json() == second.json()
    assert len(client.get(f"{PATH}/webhooks").json()["data"]) == 1


def test_a_document_that_becomes_ready_reaches_the_receiver(client: TestClient, receiver: Receiver) -> None:
    made = client.post(f"{PATH}/webhooks", json={"url": receiver.url}).json()
    assert put(client, "alpha").status_code == 201
    assert receiver.events(2) == ["document.ready", "job.finished"]
    deliveries = client.get(f"{PATH}/webhooks/{made['id']}/deliveries").json()["data"]
    assert {found["event"] for found in deliveries} == {"document.ready", "job.finished"}
    assert all(found["payload"]["collection"] == "hooked" for found in deliveries)
    assert put(client, " ").status_code == 422
    assert put(client, "alpha").json()["outcome"] == "unchanged"
    assert client.get(f"{PATH}/webhooks/{made['id']}/deliveries").json()["data"][0]["id"] == deliveries[0]["id"]


def test_a_webhook_is_told_only_what_it_takes(client: TestClient, receiver: Receiver) -> None:
    client.post(f"{PATH}/webhooks", json={"url": receiver.url, "events": ["document.failed"]})
    assert put(client, "alpha").status_code == 201
    broken = client.put(
        f"{PATH}/documents/b/original", content=b"%PDF-1.4 noise" + bytes(70), headers={"Prefer": "wait=30"}
    )
    assert broken.status_code == 422
    assert receiver.events(1) == ["document.failed"]


def test_a_test_sends_a_ping(client: TestClient, receiver: Receiver) -> None:
    made = client.post(f"{PATH}/webhooks", json={"url": receiver.url, "events": ["document.failed"]}).json()
    queued = client.post(f"{PATH}/webhooks/{made['id']}/test")
    assert (queued.status_code, queued.json()["state"], queued.json()["event"]) == (202, "pending", "ping")
    assert receiver.events(1) == ["ping"]


def test_what_is_queued_survives_a_restart(
    started: Callable[..., TestClient], receiver: Receiver, tmp_path: Any
) -> None:
    folder = tmp_path / "kept"
    first = started(data=folder, webhook_attempts=5)
    first.put(PATH, json={})
    # Public by its form and not reachable by its name, so that it waits.
    made = first.post(f"{PATH}/webhooks", json={"url": "http://nowhere.invalid/hook"}).json()
    first.post(f"{PATH}/webhooks/{made['id']}/test")
    second = started(data=folder)
    (delivery,) = second.get(f"{PATH}/webhooks/{made['id']}/deliveries").json()["data"]
    assert (delivery["event"], delivery["state"]) == ("ping", "pending")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"url": "http://127.0.0.2/"}, "url_blocked"),
        ({"url": "http://169.254.169.254/"}, "url_blocked"),
        ({"url": "file:///etc/passwd"}, "url_blocked"),
        ({"url": "https://hooks.example/", "events": []}, "invalid_request"),
        ({"url": "https://hooks.example/", "events": ["documents.ready"]}, "unknown_field"),
        ({"url": "https://hooks.example/", "secret": "mine"}, "unknown_field"),
    ],
)
def test_what_is_no_webhook_is_refused(client: TestClient, body: dict[str, Any], code: str) -> None:
    refused = client.post(f"{PATH}/webhooks", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, code)


def test_a_deleted_webhook_is_gone_with_its_deliveries(client: TestClient, receiver: Receiver) -> None:
    made = client.post(f"{PATH}/webhooks", json={"url": receiver.url}).json()
    path = f"{PATH}/webhooks/{made['id']}"
    assert client.delete(path).status_code == 204
    for method, target in (("DELETE", path), ("GET", f"{path}/deliveries"), ("POST", f"{path}/test")):
        assert client.request(method, target).status_code == 404


def test_another_collection_s_webhook_is_not_there(client: TestClient, receiver: Receiver) -> None:
    made = client.post(f"{PATH}/webhooks", json={"url": receiver.url}).json()
    client.put("/v1/collections/other", json={})
    path = f"/v1/collections/other/webhooks/{made['id']}"
    for method, target in (("DELETE", path), ("GET", f"{path}/deliveries"), ("POST", f"{path}/test")):
        assert client.request(method, target).status_code == 404
    assert client.get("/v1/collections/other/webhooks").json()["data"] == []
    assert len(client.get(f"{PATH}/webhooks").json()["data"]) == 1


def test_a_compaction_drops_what_is_still_to_be_said_of_deleted_documents(
    client: TestClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else the compaction waits for the minute in which nobody may remove an original.
    monkeypatch.setattr(sources, "ADOPTION_GRACE_SECONDS", 0.0)
    receiver.site.pages["/hook"] = receiver.site.Page(status=500)
    hook = client.post(f"{PATH}/webhooks", json={"url": receiver.url, "events": ["document.ready"]}).json()["id"]
    put(client, "about a")
    client.put(f"{PATH}/documents/b", json={"text": "about b"}, headers={"Prefer": "wait=30"})
    client.delete(f"{PATH}/documents/a")
    compacted = client.post(f"{PATH}/compact", headers={"Prefer": "wait=60"})
    assert compacted.json()["state"] == "succeeded"
    waiting = client.get(f"{PATH}/webhooks/{hook}/deliveries").json()["data"]
    assert [delivery["payload"]["data"]["document_id"] for delivery in waiting] == ["b"]
