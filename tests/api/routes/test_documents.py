from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}


def test_a_document_answers_with_its_entity_tag_and_report(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    made = put(collection, "leave", "# Leave\n\n320 days.", format="markdown", title="Leave", metadata={"year": 2026})
    answer = admin.get(f"/v1/collections/{collection}/documents/leave")
    document = answer.json()
    assert answer.headers["ETag"] == document["etag"] == made["etag"]
    assert (document["id"], document["collection"], document["state"], document["version"]) == (
        "leave",
        collection,
        "ready",
        1,
    )
    assert (document["title"], document["metadata"], document["media_type"]) == (
        "Leave",
        {"year": 2026},
        "text/markdown",
    )
    assert document["extraction"]["parser"] == "markdown"
    assert document["extraction"]["characters"] == document["characters"] == 18
    assert document["timings_ms"]["total"] >= 0
    assert document["request_id"] == answer.headers["X-Request-ID"]


def test_a_document_that_is_not_there_is_not_found(admin: TestClient, collection: str) -> None:
    for rest in ("", "/text", "/original", "/chunks", "/versions"):
        answer = admin.get(f"/v1/collections/{collection}/documents/none{rest}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_lists_are_filtered_and_cut_into_pages(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    for number in range(5):
        put(collection, f"d{number}", f"words {number}", metadata={"n": number})
    path = f"/v1/collections/{collection}/documents"
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 2, "filter": '{"field":"n","op":"gte","value":1}'} | ({"cursor": cursor} if cursor else {})
        page = admin.get(path, params=params).json()
        seen += [document["id"] for document in page["data"]]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
        if cursor is None:
            break
    assert seen == ["d1", "d2", "d3", "d4"]
    assert admin.get(path, params={"state": "failed"}).json()["data"] == []


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"filter": "{"}, "query:filter"),
        ({"filter": "[]"}, "query:filter"),
        ({"filter": '{"field":"a","op":"is","value":1}'}, "query:filter/op"),
        ({"cursor": "!"}, "query:cursor"),
        ({"limit": 201}, "query:limit"),
        ({"limit": "many"}, "query:limit"),
        ({"state": "reddy"}, "query:state"),
        ({"filtr": "{}"}, "query:filtr"),
    ],
)
def test_a_list_refuses_what_it_does_not_know(
    admin: TestClient, collection: str, params: dict[str, Any], pointer: str
) -> None:
    refused = admin.get(f"/v1/collections/{collection}/documents", params=params)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_metadata_changes_without_embedding_anything(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    made = put(collection, "d", "some words", metadata={"a": 1, "b": {"c": 1, "d": 2}})
    patch = {"metadata": {"a": None, "b": {"c": 3}}, "expires_at": "2999-01-01T01:00:00+01:00"}
    answer = admin.patch(f"/v1/collections/{collection}/documents/d", json=patch, headers=WAIT)
    changed = answer.json()
    assert (answer.status_code, changed["outcome"]) == (200, "metadata_updated")
    assert changed["metadata"] == {"b": {"c": 3, "d": 2}}
    assert changed["expires_at"] == "2999-01-01T00:00:00Z"
    assert changed["chunks"] == {"total": 1, "embedded": 0, "reused": 1}
    assert answer.headers["ETag"] == changed["etag"] != made["etag"]


def test_a_title_changes_and_is_found(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "d", "some words", title="Before")
    answer = admin.patch(f"/v1/collections/{collection}/documents/d", json={"title": "Aardvarks"}, headers=WAIT)
    assert (answer.status_code, answer.json()["title"], answer.json()["version"]) == (200, "Aardvarks", 2)
    hits = admin.post(f"/v1/collections/{collection}/search", json={"query": "aardvark", "mode": "keyword"}).json()
    assert [hit["document_id"] for hit in hits["data"]] == ["d"]


def test_a_lost_update_is_refused(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    first = put(collection, "d", "one")
    second = put(collection, "d", "two")
    path = f"/v1/collections/{collection}/documents/d"
    stale = {"If-Match": first["etag"]}
    for refused in (
        admin.put(path, json={"text": "three"}, headers=stale),
        admin.patch(path, json={"metadata": {"a": 1}}, headers=stale),
        admin.delete(path, headers=stale),
        admin.put(path, json={"text": "three"}, headers={"If-None-Match": "*"}),
        admin.put(f"{path}-none", json={"text": "three"}, headers={"If-Match": "*"}),
        admin.delete(f"{path}-none", headers={"If-Match": "*"}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert admin.put(path, json={"text": "three"}, headers={"If-Match": second["etag"], **WAIT}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "pointer"),
    [
        ({"If-Match": "abc"}, "header:If-Match"),
        ({"If-Match": 'W/"abc"'}, "header:If-Match"),
        ({"If-None-Match": '"abc"'}, "header:If-None-Match"),
        ({"Prefer": "wait=61"}, "header:Prefer"),
        ({"Prefer": "wait=-1"}, "header:Prefer"),
        ({"Prefer": "respond-async, wait=soon"}, "header:Prefer"),
    ],
)
def test_a_header_that_cannot_be_kept_is_refused(
    admin: TestClient, collection: str, headers: dict[str, str], pointer: str
) -> None:
    refused = admin.put(f"/v1/collections/{collection}/documents/d", json={"text": "x"}, headers=headers)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_put_delete_put_is_new_again(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    path = f"/v1/collections/{collection}/documents/d"
    assert put(collection, "d", "same words")["outcome"] == "created"
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    assert admin.delete(path).status_code == 204
    again = admin.put(path, json={"text": "same words"}, headers=WAIT)
    assert (again.status_code, again.json()["outcome"]) == (201, "created")


def test_documents_are_deleted_by_a_filter(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    for year in (2019, 2020, 2021):
        put(collection, f"y{year}", f"words of {year}", metadata={"year": year})
    path = f"/v1/collections/{collection}/documents"
    deleted = admin.post(f"{path}/delete", json={"filter": {"field": "year", "op": "lt", "value": 2021}})
    assert deleted.json() == {"deleted": 2}
    assert [document["id"] for document in admin.get(path).json()["data"]] == ["y2021"]
    refused = admin.post(f"{path}/delete", json={})
    assert refused.json()["errors"][0]["pointer"] == "/filter"


def test_the_history_is_newest_first_and_paged(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    for text in ("one", "two words", "three more words"):
        put(collection, "d", text)
    path = f"/v1/collections/{collection}/documents/d/versions"
    first = admin.get(path, params={"limit": 2}).json()
    assert [(line["version"], line["current"]) for line in first["data"]] == [(3, True), (2, False)]
    rest = admin.get(path, params={"cursor": first["next_cursor"]}).json()
    assert [line["version"] for line in rest["data"]] == [1]
    assert rest["has_more"] is False


def test_only_a_failed_document_can_be_retried(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "d", "some words")
    path = f"/v1/collections/{collection}/documents"
    assert admin.post(f"{path}/d/retry").status_code == 409
    assert admin.post(f"{path}/none/retry").status_code == 404
    failed = admin.put(f"{path}/broken/original", content=b"%PDF-1.4 noise", headers=WAIT)
    assert failed.status_code == 422
    document = admin.get(f"{path}/broken").json()
    assert (document["state"], document["error"]["code"]) == ("failed", failed.json()["code"])
    again = admin.post(f"{path}/broken/retry", headers=WAIT)
    assert (again.status_code, again.json()["code"]) == (422, failed.json()["code"])
    assert admin.post(f"{path}/broken/retry").status_code == 202


def test_an_earlier_version_comes_back_whole_and_asks_no_model(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    path = f"/v1/collections/{collection}/documents/d"
    put(collection, "d", "alpha is the first word", metadata={"n": 1}, title="First")
    put(collection, "d", "beta came later", metadata={"n": 2}, title="Second")
    restored = admin.post(f"{path}/restore", json={"version": 1}, headers=WAIT)
    assert restored.status_code == 200, restored.text
    document = restored.json()
    assert (document["version"], document["title"], document["metadata"]) == (3, "First", {"n": 1})
    assert document["chunks"] == {"total": 1, "embedded": 0, "reused": 1}
    assert admin.get(f"{path}/text").text == "alpha is the first word"
    found = {
        query: admin.post(f"/v1/collections/{collection}/search", json={"query": query, "mode": "keyword"}).json()
        for query in ("alpha", "beta")
    }
    assert [len(found[query]["data"]) for query in ("alpha", "beta")] == [1, 0]
    again = admin.post(f"{path}/restore", json={"version": 3}, headers=WAIT)
    assert (again.status_code, again.json()["outcome"]) == (200, "unchanged")


def test_a_version_that_never_was_or_is_no_longer_kept_cannot_be_restored(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    admin.patch(f"/v1/collections/{collection}", json={"keep_versions": 1})
    for text in ("one", "two words", "three more words"):
        put(collection, "d", text)
    path = f"/v1/collections/{collection}/documents/d"
    kept = {line["version"]: line["kept"] for line in admin.get(f"{path}/versions").json()["data"]}
    assert kept == {3: True, 2: True, 1: False}
    gone = admin.post(f"{path}/restore", json={"version": 1})
    assert (gone.status_code, gone.json()["code"]) == (409, "conflict")
    assert "keep_versions" in gone.json()["hint"]
    assert admin.post(f"{path}/restore", json={"version": 9}).status_code == 404
    stale = admin.post(f"{path}/restore", json={"version": 2}, headers={"If-Match": '"other"'})
    assert stale.status_code == 412
