import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.event_stream import Event
from app.api.routes.jobs import _events
from app.catalog.job import Job


def test_a_job_tells_how_it_went(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "d", "some words")
    (job,) = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    assert admin.get(f"/v1/jobs/{job['id']}").json() == job
    assert (job["kind"], job["collection"], job["document_id"]) == ("ingest", collection, "d")
    assert (job["state"], job["attempt"], job["error"]) == ("succeeded", 1, None)
    assert {"load", "embed", "write", "index"} <= {stage["name"] for stage in job["stages"]}
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]
    assert job["result"]["outcome"] == "created"


def test_jobs_are_listed_by_collection_document_and_state(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    for name in ("a", "b", "c"):
        put(collection, name, f"words of {name}")
    wanted = {"collection": collection, "limit": 2}
    first = admin.get("/v1/jobs", params=wanted).json()
    rest = admin.get("/v1/jobs", params=wanted | {"cursor": first["next_cursor"]}).json()
    assert [job["document_id"] for job in first["data"] + rest["data"]] == ["c", "b", "a"]
    of_b = admin.get("/v1/jobs", params={"collection": collection, "document_id": "b"}).json()["data"]
    assert [job["document_id"] for job in of_b] == ["b"]
    assert admin.get("/v1/jobs", params={"collection": collection, "state": "failed"}).json()["data"] == []
    assert admin.get("/v1/jobs", params={"collection": "none"}).status_code == 404


def test_a_job_that_waits_is_cancelled_and_its_document_can_be_retried(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = started()
    jobs = type(client.app.state.services.jobs)  # type: ignore[attr-defined]
    client.put("/v1/collections/c", json={})
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "claim", lambda *_: None)
        queued = client.put("/v1/collections/c/documents/d", json={"text": "some words"})
        cancelled = client.delete(queued.headers["Location"])
        assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
        waited = client.put("/v1/collections/c/documents/e", json={"text": "x y z"}, headers={"Prefer": "wait=0"})
        assert (waited.status_code, waited.headers["Preference-Applied"]) == (202, "wait=0")
    retried = client.post("/v1/collections/c/documents/d/retry", headers={"Prefer": "wait=30"})
    assert (retried.status_code, retried.json()["outcome"]) == (201, "created")


def test_a_job_that_is_not_there_is_not_found(admin: TestClient) -> None:
    assert admin.get("/v1/jobs/job_none").status_code == 404
    assert admin.delete("/v1/jobs/job_none").status_code == 404


def test_a_search_key_may_not_look_at_jobs(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    put(collection, "d", "some words")
    (job,) = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    client = key_for("search", collection)
    for refused in (
        client.get("/v1/jobs"),
        client.get(f"/v1/jobs/{job['id']}"),
        client.delete(f"/v1/jobs/{job['id']}"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
        assert refused.json()["needed_role"] == "ingest"


def events_of(text: str) -> list[dict[str, str]]:
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_the_events_of_a_job_that_has_ended_are_its_last_state(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "d", "some words")
    (job,) = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    path = f"/v1/jobs/{job['id']}/events"
    answer = admin.get(path)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    (event,) = events_of(answer.text)
    assert event["event"] == "job"
    assert json.loads(event["data"]) == job
    again = admin.get(path, headers={"Last-Event-ID": event["id"]})
    assert (again.status_code, again.text) == (204, "")
    (event_again,) = events_of(admin.get(path, headers={"Last-Event-ID": "0"}).text)
    assert event_again == event
    refused = admin.get(path, headers={"Last-Event-ID": "x"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "header:Last-Event-ID")


def test_the_events_of_a_job_that_is_not_the_key_s_are_not_there(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    put(collection, "d", "some words", metadata={"team": "hr"})
    (job,) = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    admin.put(f"/v1/collections/{collection}-other", json={})
    path = f"/v1/jobs/{job['id']}/events"
    assert key_for("ingest", f"{collection}-other").get(path).status_code == 404
    assert key_for("search", collection).get(path).status_code == 403
    elsewhere = key_for("ingest", collection, filter={"field": "team", "op": "eq", "value": "it"})
    assert elsewhere.get(path).status_code == 404
    assert key_for("ingest", collection).get(path).status_code == 200


def test_a_key_that_is_revoked_hears_no_more_of_a_job(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "d", "some words")
    body = {"name": "k", "role": "ingest", "collections": [collection]}
    made = admin.post("/v1/keys", json=body).json()
    services = admin.app.state.services  # type: ignore[attr-defined]
    principal = services.api_keys.authenticate(made["secret"])
    (job,), _ = services.jobs.list(None, document_id="d", limit=1)

    async def heard() -> list[Event]:
        async def states() -> AsyncGenerator[Job, None]:
            yield job
            assert admin.delete(f"/v1/keys/{made['id']}").status_code in (200, 204)
            yield job

        return [event async for event in _events(services, principal, states())]

    assert len(asyncio.run(heard())) == 1
