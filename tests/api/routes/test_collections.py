from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient


def test_a_collection_is_made_once_and_then_replaced(admin: TestClient) -> None:
    made = admin.put("/v1/collections/made-once", json={"title": "One", "instructions": "Be brief."})
    assert made.status_code == 201
    assert made.json()["embedding"] == {"model": "hashed"}
    again = admin.put("/v1/collections/made-once", json={"title": "One", "instructions": "Be brief."})
    assert (again.status_code, again.json()) == (200, made.json())
    replaced = admin.put("/v1/collections/made-once", json={"title": "Two"})
    assert (replaced.status_code, replaced.json()["title"], replaced.json()["instructions"]) == (200, "Two", None)
    assert admin.get("/v1/collections/made-once").json() == replaced.json()


def test_a_patch_changes_only_what_it_names(admin: TestClient, collection: str) -> None:
    admin.put(f"/v1/collections/{collection}", json={"title": "One", "defaults": {"top_k": 3}})
    changed = admin.patch(f"/v1/collections/{collection}", json={"description": "More"}).json()
    assert (changed["title"], changed["description"], changed["defaults"]) == ("One", "More", {"top_k": 3})
    cleared = admin.patch(f"/v1/collections/{collection}", json={"title": None, "defaults": {}}).json()
    assert (cleared["title"], cleared["description"], cleared["defaults"]) == (None, "More", {})


@pytest.mark.parametrize("name", ["A", "a b", "-a", "_a", "a.b", "ä", "x" * 64, "%00"])
def test_a_name_that_is_no_slug_is_refused(admin: TestClient, name: str) -> None:
    refused = admin.put(f"/v1/collections/{name}", json={})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "path:collection"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"chunking": {"size": 10, "overlap": 10}}, "/chunking/overlap"),
        ({"chunking": {"size": 0}}, "/chunking/size"),
        ({"chunking": {"strategy": "semantics"}}, "/chunking/strategy"),
        ({"embedding": {"model": "hashd"}}, "/embedding/model"),
        ({"normalisation": {"lowercase": True}}, "/normalisation/lowercase"),
        ({"indexing": "fast"}, "/indexing"),
        ({"contextualizer": "model"}, "/contextualizer"),
        ({"defaults": {"top_k": 5000}}, "/defaults/top_k"),
        ({"defaults": {"query": "x"}}, "/defaults/query"),
        ({"defaults": {"filter": {"field": "a"}}}, "/defaults/filter/op"),
        ({"defaults": {"top_k": 9, "candidates": 3}}, "/defaults/candidates"),
        ({"metadata_fields": [1]}, "/metadata_fields/0"),
        ({"name": "x"}, "/name"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_made(
    admin: TestClient, body: dict[str, Any], pointer: str
) -> None:
    refused = admin.put("/v1/collections/never-made", json=body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert admin.get("/v1/collections/never-made").status_code == 404


def test_the_model_of_a_collection_with_vectors_is_fixed(
    started: Callable[..., TestClient],
) -> None:
    client = started(embedding_model="other")
    client.put("/v1/collections/c", json={})
    assert client.put("/v1/collections/c", json={"embedding": {"model": "other"}}).status_code == 200
    client.put("/v1/collections/c", json={"embedding": {"model": "hashed"}})
    put = client.put("/v1/collections/c/documents/d", json={"text": "some words"}, headers={"Prefer": "wait=30"})
    assert put.status_code == 201
    refused = client.put("/v1/collections/c", json={"embedding": {"model": "other"}})
    assert (refused.status_code, refused.json()["code"]) == (409, "embedding_model_mismatch")
    kept = client.put("/v1/collections/c", json={"title": "kept"})
    assert (kept.status_code, kept.json()["embedding"]) == (200, {"model": "hashed"})


def test_lists_are_cut_into_pages_that_stay_when_more_comes(started: Callable[..., TestClient]) -> None:
    client = started()
    for number in range(5):
        client.put(f"/v1/collections/c{number}", json={})
    first = client.get("/v1/collections?limit=2").json()
    assert [found["name"] for found in first["data"]] == ["c4", "c3"]
    assert first["has_more"] is True
    client.put("/v1/collections/c5", json={})
    rest = client.get("/v1/collections", params={"limit": 10, "cursor": first["next_cursor"]}).json()
    assert [found["name"] for found in rest["data"]] == ["c2", "c1", "c0"]
    assert (rest["has_more"], rest["next_cursor"]) == (False, None)


def test_a_deleted_collection_leaves_nothing_on_the_disk(started: Callable[..., TestClient]) -> None:
    client = started()
    data: Path = client.app.state.services.settings.data  # type: ignore[attr-defined]
    client.put("/v1/collections/c", json={})
    key = client.post("/v1/keys", json={"name": "k", "collections": ["c"], "role": "search"}).json()
    secret_words = "a very distinctive sentence"
    client.put("/v1/collections/c/documents/d", json={"text": secret_words}, headers={"Prefer": "wait=30"})
    assert list((data / "collections").iterdir())
    assert client.delete("/v1/collections/c").status_code == 204
    assert not list((data / "collections").iterdir())
    assert not any(secret_words.encode() in file.read_bytes() for file in data.rglob("*") if file.is_file())
    assert client.get("/v1/collections/c").status_code == 404
    assert client.get("/v1/jobs").json()["data"] == []
    assert client.put("/v1/collections/c", json={}).status_code == 201
    assert client.get("/v1/collections/c/documents").json()["data"] == []
    reused = TestClient(client.app, headers={"Authorization": f"Bearer {key['secret']}"})
    assert reused.get("/v1/collections/c").status_code == 401


def test_stats_count_what_is_there(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    empty = admin.get(f"/v1/collections/{collection}/stats").json()
    assert (empty["chunks"], empty["embedding"]) == (0, None)
    put(collection, "a", "some words")
    stats = admin.get(f"/v1/collections/{collection}/stats").json()
    assert (stats["documents"]["ready"], stats["chunks"], stats["characters"]) == (1, 1, 10)
    assert stats["embedding"]["dimensions"] == 384


def test_only_the_admin_key_makes_collections_and_only_owners_change_them(
    admin: TestClient, collection: str, key_for: Callable[..., TestClient]
) -> None:
    owner, ingester = key_for("owner", collection), key_for("ingest", collection)
    path = f"/v1/collections/{collection}"
    assert owner.put("/v1/collections/owners-own", json={}).status_code == 404
    assert owner.put(path, json={"title": "Mine"}).status_code == 200
    refused = ingester.put(path, json={"title": "Mine"})
    assert (refused.status_code, refused.json()["needed_role"], refused.json()["role"]) == (403, "owner", "ingest")
    assert [found["name"] for found in owner.get("/v1/collections").json()["data"]] == [collection]
    assert ingester.delete(path).status_code == 403
    assert owner.delete(path).status_code == 204
