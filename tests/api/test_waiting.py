import threading
import time
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient


def test_requests_that_wait_hold_no_thread(started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.main.THREADS", 2)
    client = started()
    client.put("/v1/collections/c", json={})
    jobs = client.app.state.services.jobs  # type: ignore[attr-defined]
    held = threading.Event()
    claim = type(jobs).claim
    monkeypatch.setattr(type(jobs), "claim", lambda *args: claim(*args) if held.is_set() else None)
    statuses: list[int] = []

    def put(name: str) -> None:
        answer = client.put(f"/v1/collections/c/documents/{name}", json={"text": name}, headers={"Prefer": "wait=60"})
        statuses.append(answer.status_code)

    waiting = [threading.Thread(target=put, args=(f"d{number}",)) for number in range(8)]
    for thread in waiting:
        thread.start()
    deadline = time.monotonic() + 30
    while jobs.queued_count() < 8:
        assert time.monotonic() < deadline
    began = time.perf_counter()
    assert client.post("/v1/collections/c/search", json={"query": "x"}).status_code == 200
    assert time.perf_counter() - began < 5
    assert statuses == []
    held.set()
    with jobs.wake:
        jobs.wake.notify_all()
    for thread in waiting:
        thread.join()
    assert statuses == [201] * 8


def test_other_preferences_are_ignored(admin: TestClient, collection: str) -> None:
    headers = [("Prefer", "respond-async"), ("Prefer", "handling=lenient, wait=30; x=1")]
    answer = admin.put(f"/v1/collections/{collection}/documents/d", json={"text": "some words"}, headers=headers)
    assert (answer.status_code, answer.headers["Preference-Applied"]) == (201, "wait=30")


def test_a_document_deleted_while_its_writer_waits_is_told_as_cancelled(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = started()
    client.put("/v1/collections/c", json={})
    jobs = client.app.state.services.jobs  # type: ignore[attr-defined]
    monkeypatch.setattr(type(jobs), "claim", lambda *_: None)
    answers = []
    path = "/v1/collections/c/documents/d"
    writer = threading.Thread(
        target=lambda: answers.append(client.put(path, json={"text": "x"}, headers={"Prefer": "wait=60"}))
    )
    writer.start()
    deadline = time.monotonic() + 30
    while jobs.queued_count() < 1:
        assert time.monotonic() < deadline
    assert client.delete(path).status_code == 204
    writer.join()
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "cancelled")
