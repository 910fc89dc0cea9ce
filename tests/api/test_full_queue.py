"""A queue that is full refuses a document, and leaves everything as it was."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}


def test_a_full_queue_says_when_to_come_back(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = started(max_queued_jobs=1)
    client.put("/v1/collections/c", json={})
    services = client.app.state.services  # type: ignore[attr-defined]
    monkeypatch.setattr(type(services.jobs), "claim", lambda *_: None)
    path = "/v1/collections/c/documents"
    assert client.put(f"{path}/a", json={"text": "one"}).status_code == 202
    refused = client.put(f"{path}/b", json={"text": "two"})
    assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
    assert int(refused.headers["Retry-After"]) >= 1
    assert client.get(f"{path}/b").status_code == 404


@pytest.mark.parametrize("has_version", [False, True])
def test_a_refused_write_leaves_the_document_as_it_was(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, has_version: bool
) -> None:
    client = started(max_queued_jobs=1, fetch=True)
    client.put("/v1/collections/c", json={})
    path = "/v1/collections/c/documents"
    bad = {"content": b"%PDF-1.7 nothing", "headers": {"Content-Type": "application/pdf"} | WAIT}
    if has_version:
        assert client.put(f"{path}/a", json={"text": "one"}, headers=WAIT).status_code == 201
    assert client.put(f"{path}/a/original", params={"title": "Bad"}, **bad).status_code == 422
    before = client.get(f"{path}/a").json()
    assert before["error"] is not None
    services = client.app.state.services  # type: ignore[attr-defined]
    monkeypatch.setattr(type(services.jobs), "claim", lambda *_: None)
    assert client.put(f"{path}/b", json={"text": "one"}).status_code == 202
    described = {"title": "Other", "metadata": {"a": 1}}
    again = client.put(f"{path}/a", json={"text": "two", **described})
    fetch = client.post(f"{path}/fetch", json={"id": "a", "url": "https://example.com/", **described})
    assert (again.json()["code"], fetch.json()["code"]) == ("queue_full", "queue_full")
    after = client.get(f"{path}/a").json()
    volatile = ("updated_at", "request_id", "timings_ms")
    assert {name: after[name] for name in after if name not in volatile} == {
        name: before[name] for name in before if name not in volatile
    }
