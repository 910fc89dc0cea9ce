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


def test_a_version_outside_the_filter_is_neither_listed_nor_restored(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    admin.patch(f"/v1/collections/{collection}", json={"keep_versions": 5})
    for number, team in enumerate(["hr", "legal", "hr"], start=1):
        put(collection, "moved", f"words {number} for {team}", title=f"For {team}", metadata={"team": team})
    client = key_for("ingest", collection, filter=FILTER)
    path = f"/v1/collections/{collection}/documents/moved"

    assert [line["version"] for line in admin.get(f"{path}/versions").json()["data"]] == [3, 2, 1]
    first = client.get(f"{path}/versions", params={"limit": 1}).json()
    assert [line["version"] for line in first["data"]] == [3]
    second = client.get(f"{path}/versions", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert ([line["version"] for line in second["data"]], second["has_more"]) == ([1], False)

    hidden = client.post(f"{path}/restore", json={"version": 2}, headers=WAIT)
    absent = client.post(f"{path}/restore", json={"version": 9}, headers=WAIT)
    assert hidden.status_code == absent.status_code == 404
    assert hidden.json()["detail"].replace("version 2", "version 9") == absent.json()["detail"]
    assert client.post(f"{path}/restore", json={"version": 1}, headers=WAIT).json()["title"] == "For hr"


def test_no_job_tells_of_a_version_outside_the_filter_or_of_a_document_before_this_one(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    put(collection, "again", "words for legal", metadata={"team": "legal"})
    admin.delete(f"/v1/collections/{collection}/documents/again")
    for team in ("hr", "legal", "hr"):
        put(collection, "again", f"words for {team}, and more", metadata={"team": team})
    client = key_for("ingest", collection, filter=FILTER)

    jobs = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    assert [job["result"]["version"] for job in jobs] == [3, 2, 1, 1]
    assert [client.get(f"/v1/jobs/{job['id']}").status_code for job in jobs] == [200, 404, 200, 404]
    assert [job["id"] for job in client.get("/v1/jobs").json()["data"]] == [jobs[0]["id"], jobs[2]["id"]]


def test_a_retry_does_not_publish_what_the_filter_hides(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    put(collection, "plan", "words for hr", metadata={"team": "hr"})
    path = f"/v1/collections/{collection}/documents/plan"
    failed = admin.put(
        f"{path}/original",
        params={"metadata": '{"team":"legal"}', "filename": "plan.pdf"},
        content=b"%PDF-1.7 broken",
        headers=WAIT,
    )
    assert failed.status_code >= 400
    client = key_for("ingest", collection, filter=FILTER)
    assert client.post(f"{path}/retry", headers=WAIT).status_code == 404
    assert admin.post(f"{path}/retry", headers=WAIT).status_code == failed.status_code


@pytest.mark.parametrize("value", ["x", 5])
def test_no_warning_tells_which_fields_hidden_documents_have(
    teams: str, key_for: Callable[..., TestClient], put: Callable[..., Any], value: Any
) -> None:
    client = key_for("search", teams, filter=FILTER)
    put(teams, "secret", "words", metadata={"secret": "value", "team": "legal"})

    def told(field: str) -> Any:
        body = {
            "query": f"words {field}:5",
            "query_syntax": "advanced",
            "filter": {"or": [{"field": field, "op": "gt", "value": value}, FILTER]},
            "facets": [field],
        }
        answer = client.post(f"/v1/collections/{teams}/search", json=body).json()
        return answer["warnings"], answer["facets"][field]

    assert told("secret") == told("nobody")
