"""Quotas of a collection: who sets them, what they refuse, and what the answer says."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

READY = {"Prefer": "wait=30"}


def give(admin: TestClient, collection: str, **quotas: int) -> None:
    changed = admin.patch(f"/v1/collections/{collection}", json={"quotas": quotas, "chunking": {"size": 40}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["quotas"] == quotas


def put(client: TestClient, collection: str, document_id: str, text: str = "a few words") -> Any:
    return client.put(f"/v1/collections/{collection}/documents/{document_id}", json={"text": text}, headers=READY)


def told(answer: Any) -> tuple[Any, ...]:
    body = answer.json()
    return answer.status_code, body["code"], body["quota"], body["limit"], body.get("used")


def test_documents_above_the_quota_are_refused_and_a_deletion_makes_room(admin: TestClient, collection: str) -> None:
    give(admin, collection, documents=2)
    assert [put(admin, collection, name).status_code for name in ("a", "b")] == [201, 201]
    refused = put(admin, collection, "c")
    assert told(refused) == (409, "quota_exceeded", "documents", 2, 2)
    assert "quotas.documents" in refused.json()["hint"]
    assert put(admin, collection, "a", "other words").status_code == 200, "a new version needs no room"
    assert admin.delete(f"/v1/collections/{collection}/documents/b").status_code == 204
    assert put(admin, collection, "c").status_code == 201


def test_the_items_of_a_batch_that_fit_are_taken(admin: TestClient, collection: str) -> None:
    give(admin, collection, documents=3)
    batch = {"documents": [{"id": f"d{number}", "text": f"text {number}"} for number in range(5)]}
    results = admin.post(f"/v1/collections/{collection}/documents", json=batch, headers=READY).json()["results"]
    assert [result["status"] for result in results] == [201, 201, 201, 409, 409]
    assert results[4]["error"]["code"] == "quota_exceeded"
    assert results[4]["error"]["quota"] == "documents"


def test_documents_from_urls_count_like_others(started: Callable[..., TestClient], site: Any) -> None:
    client = started(fetch=True, fetch_allowed_networks="127.0.0.1/32")
    assert client.put("/v1/collections/web", json={"quotas": {"documents": 1}}).status_code == 201
    site.pages["/a"] = site.Page(b"alpha", headers={"Content-Type": "text/plain"})
    fetch, url = "/v1/collections/web/documents/fetch", f"http://127.0.0.1:{site.port}/a"
    assert client.post(fetch, json={"url": url, "id": "a"}, headers=READY).status_code == 201
    assert told(client.post(fetch, json={"url": url, "id": "b"})) == (409, "quota_exceeded", "documents", 1, 1)
    assert client.post(fetch, json={"url": url, "id": "a"}, headers=READY).json()["outcome"] == "unchanged"
    sources = client.get("/v1/collections/web/sources").json()["data"]
    assert [source["document_id"] for source in sources] == ["a"]


def test_requests_that_arrive_together_do_not_go_beyond(admin: TestClient, collection: str) -> None:
    give(admin, collection, documents=5, chunks=5)
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda number: put(admin, collection, f"d{number}").status_code, range(12)))
    assert sorted(statuses) == [201] * 5 + [409] * 7


def test_a_job_whose_chunks_do_not_fit_fails_and_the_version_before_answers(admin: TestClient, collection: str) -> None:
    give(admin, collection, chunks=3)
    assert put(admin, collection, "a").status_code == 201
    long = "\n\n".join(f"Sentence number {number} is here." for number in range(6))
    refused = put(admin, collection, "a", long)
    assert told(refused) == (409, "quota_exceeded", "chunks", 3, 0)
    (job,) = admin.get("/v1/jobs", params={"collection": collection, "state": "failed"}).json()["data"]
    assert job["error"]["code"] == "quota_exceeded"
    assert admin.get(f"/v1/collections/{collection}/documents/a/text").text == "a few words"
    assert put(admin, collection, "b", "just one more").status_code == 201


def test_bytes_and_the_size_of_one_document_are_limited_and_nothing_refused_stays(
    admin: TestClient, collection: str
) -> None:
    give(admin, collection, bytes=100, document_bytes=60)
    assert put(admin, collection, "a", "x" * 60).status_code == 201
    assert told(put(admin, collection, "b", "y" * 61)) == (413, "quota_exceeded", "document_bytes", 60, None)
    assert told(put(admin, collection, "b", "y" * 41)) == (409, "quota_exceeded", "bytes", 100, 60)
    raw = f"/v1/collections/{collection}/documents/b/original"
    assert told(admin.put(raw, content=b"y" * 41)) == (409, "quota_exceeded", "bytes", 100, 60)
    assert put(admin, collection, "same", "x" * 60).status_code == 201, "equal bytes are stored once"
    assert put(admin, collection, "b", "y" * 40).status_code == 201
    stats = admin.get(f"/v1/collections/{collection}/stats").json()
    assert stats["original_bytes"] == 100
    assert stats["quotas"] == {"bytes": {"limit": 100, "used": 100}, "document_bytes": {"limit": 60, "used": None}}


def test_stats_show_what_is_used_of_each_quota(admin: TestClient, collection: str) -> None:
    assert admin.get(f"/v1/collections/{collection}/stats").json()["quotas"] == {}
    give(admin, collection, documents=10, chunks=20)
    put(admin, collection, "a")
    quotas = admin.get(f"/v1/collections/{collection}/stats").json()["quotas"]
    assert quotas == {"documents": {"limit": 10, "used": 1}, "chunks": {"limit": 20, "used": 1}}


def test_only_the_admin_key_changes_quotas_and_an_owner_keeps_them(
    admin: TestClient, collection: str, key_for: Callable[..., TestClient]
) -> None:
    give(admin, collection, documents=2)
    owner, path = key_for("owner", collection), f"/v1/collections/{collection}"
    assert owner.get(path).json()["quotas"] == {"documents": 2}
    for refused in (
        owner.patch(path, json={"quotas": {"documents": 3}}),
        owner.patch(path, json={"quotas": {}}),
        owner.put(path, json={"quotas": {"documents": None}}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
        assert refused.json()["needed_role"] == "admin"
    assert owner.patch(path, json={"title": "new"}).json()["quotas"] == {"documents": 2}
    assert owner.put(path, json={"title": "newer"}).json()["quotas"] == {"documents": 2}
    assert owner.patch(path, json={"quotas": {"documents": 2}}).status_code == 200
    assert admin.put(path, json={}).json()["quotas"] == {}


@pytest.mark.parametrize("quotas", [{"documents": -1}, {"document": 1}, {"bytes": "many"}])
def test_quotas_that_are_none_are_refused(admin: TestClient, collection: str, quotas: Any) -> None:
    refused = admin.patch(f"/v1/collections/{collection}", json={"quotas": quotas})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/quotas/")
