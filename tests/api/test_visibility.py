"""A key's forced filter hides documents wherever they could be read, changed or guessed."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

FILTER = {"field": "team", "op": "eq", "value": "hr"}
WAIT = {"Prefer": "wait=30"}


@pytest.fixture
def teams(admin: TestClient, collection: str, put: Callable[..., Any]) -> str:
    put(collection, "seen", "words for hr", metadata={"team": "hr"})
    put(collection, "hidden", "words for legal", metadata={"team": "legal"})
    put(collection, "bare", "words for nobody")
    return collection


@pytest.mark.parametrize("mode", ["dense", "keyword", "hybrid"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"filter": None},
        {"filter": {"field": "team", "op": "eq", "value": "legal"}},
        {"filter": {"or": [FILTER, {"not": FILTER}]}},
        {"document_ids": ["hidden", "seen"]},
    ],
)
def test_no_search_sees_past_the_filter(
    teams: str, key_for: Callable[..., TestClient], mode: str, more: dict[str, Any]
) -> None:
    client = key_for("search", teams, filter=FILTER)
    hits = client.post(f"/v1/collections/{teams}/search", json={"query": "words", "mode": mode, **more}).json()["data"]
    assert {hit["document_id"] for hit in hits} <= {"seen"}


def test_no_answer_uses_what_is_hidden(teams: str, key_for: Callable[..., TestClient]) -> None:
    client = key_for("ask", teams, filter=FILTER)
    answer = client.post(f"/v1/collections/{teams}/ask", json={"question": "Which words for legal?"}).json()
    assert {source["document_id"] for source in answer["sources"]} <= {"seen"}


def test_what_is_hidden_cannot_be_read_or_listed(teams: str, key_for: Callable[..., TestClient]) -> None:
    client = key_for("search", teams, filter=FILTER)
    path = f"/v1/collections/{teams}/documents"
    assert [document["id"] for document in client.get(path).json()["data"]] == ["seen"]
    everything = {"filter": '{"not":{"field":"team","op":"eq","value":"hr"}}'}
    assert client.get(path, params=everything).json()["data"] == []
    for rest in ("", "/text", "/original", "/chunks", "/versions"):
        assert client.get(f"{path}/seen{rest}").status_code == 200
        hidden, absent = client.get(f"{path}/hidden{rest}"), client.get(f"{path}/absent{rest}")
        assert hidden.status_code == absent.status_code == 404
        assert hidden.json()["detail"].replace("hidden", "absent") == absent.json()["detail"]


def test_what_is_hidden_cannot_be_changed_or_deleted(
    admin: TestClient, teams: str, key_for: Callable[..., TestClient]
) -> None:
    client = key_for("ingest", teams, filter=FILTER)
    path = f"/v1/collections/{teams}/documents"
    before = admin.get(f"{path}/hidden").json()["etag"]
    assert client.put(f"{path}/hidden", json={"text": "mine now"}, headers=WAIT).status_code == 404
    assert client.put(f"{path}/hidden/original", content=b"mine now", headers=WAIT).status_code == 404
    assert client.patch(f"{path}/hidden", json={"metadata": {"team": "hr"}}).status_code == 404
    assert client.post(f"{path}/hidden/retry").status_code == 404
    batch = client.post(path, json={"documents": [{"id": "hidden", "text": "mine now"}]}, headers=WAIT).json()
    assert batch["results"][0]["status"] == 404
    assert client.delete(f"{path}/hidden").status_code == client.delete(f"{path}/absent").status_code == 204
    everything = {"filter": {"and": []}}
    assert client.post(f"{path}/delete", json=everything).json() == {"deleted": 1}
    assert admin.get(f"{path}/hidden").json()["etag"] == before
    assert [document["id"] for document in admin.get(path).json()["data"]] == ["hidden", "bare"]


def test_no_job_or_duplicate_tells_of_what_is_hidden(
    admin: TestClient, teams: str, key_for: Callable[..., TestClient]
) -> None:
    client = key_for("ingest", teams, filter=FILTER)
    (hidden,) = admin.get("/v1/jobs", params={"collection": teams, "document_id": "hidden"}).json()["data"]
    (rebuild,) = [admin.post(f"/v1/collections/{teams}/rebuild", headers=WAIT).json()]
    for job in (hidden, rebuild):
        assert client.get(f"/v1/jobs/{job['id']}").status_code == 404
        assert client.delete(f"/v1/jobs/{job['id']}").status_code == 404
    assert client.get("/v1/jobs", params={"document_id": "hidden"}).json()["data"] == []

    copy = {"text": "words for legal", "metadata": {"team": "hr"}}
    made = client.put(f"/v1/collections/{teams}/documents/copy", json=copy, headers=WAIT)
    assert (made.status_code, made.json()["duplicate_of"]) == (201, [])
    again = {"documents": [{"id": "copy2", **copy}]}
    assert client.post(f"/v1/collections/{teams}/documents", json=again, headers=WAIT).json()["results"][0][
        "duplicate_of"
    ] == ["copy"]
    jobs = client.get("/v1/jobs").json()["data"]
    assert [job["document_id"] for job in jobs] == ["copy2", "copy", "seen"]
    assert "hidden" not in str(jobs)
    assert client.get(f"/v1/jobs/{jobs[0]['id']}").json()["result"]["duplicate_of"] == ["copy"]
    assert client.delete(f"/v1/jobs/{jobs[0]['id']}").json()["result"]["duplicate_of"] == ["copy"]


def test_a_key_with_a_filter_neither_counts_nor_changes_the_whole_collection(
    teams: str, key_for: Callable[..., TestClient]
) -> None:
    client = key_for("owner", teams, filter=FILTER)
    path = f"/v1/collections/{teams}"
    answers = [
        client.get(f"{path}/stats"),
        client.post(f"{path}/verify"),
        client.post(f"{path}/rebuild"),
        client.put(path, json={}),
        client.patch(path, json={}),
        client.delete(path),
        client.get("/v1/keys"),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "insufficient_scope")] * 7


def test_a_document_written_outside_the_filter_is_answered_to_its_writer_and_then_hidden(
    teams: str, key_for: Callable[..., TestClient]
) -> None:
    client = key_for("ingest", teams, filter=FILTER)
    path = f"/v1/collections/{teams}/documents/outside"
    made = client.put(path, json={"text": "words", "metadata": {"team": "legal"}}, headers=WAIT)
    assert (made.status_code, made.json()["outcome"]) == (201, "created")
    assert client.get(path).status_code == 404
