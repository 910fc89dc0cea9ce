"""One search over several collections of a key."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.telemetry import counters


@pytest.fixture(scope="module")
def three(admin: TestClient) -> list[str]:
    """Three collections with one document each about leave, and one about engines."""
    names = ["east", "west", "north"]
    for name in names:
        admin.put(f"/v1/collections/{name}", json={})
        texts = {"leave": f"Parental leave in the {name} office takes ten days", "engine": "Engines need oil"}
        documents = [
            {"id": key, "text": text, "metadata": {"office": name, "kind": key}} for key, text in texts.items()
        ]
        admin.post(f"/v1/collections/{name}/documents", json={"documents": documents}, headers={"Prefer": "wait=60"})
    return names


def search(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/search", json={"query": "parental leave in the office", **body})
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def test_each_hit_names_its_collection_and_ranks_are_fused(admin: TestClient, three: list[str]) -> None:
    reply = search(admin, collections=three, top_k=3)
    assert sorted(hit["collection"] for hit in reply["data"]) == sorted(three)
    assert {hit["document_id"] for hit in reply["data"]} == {"leave"}
    assert [hit["rank"] for hit in reply["data"]] == [1, 2, 3]
    assert {hit["score_type"] for hit in reply["data"]} == {"rrf"}
    assert reply["has_more"] is False


def test_explain_tells_the_stages_of_each_collection(admin: TestClient, three: list[str]) -> None:
    trace = search(admin, collections=three, explain=True)["trace"]
    fused = {stage["collection"]: stage["hits"] for stage in trace if stage["stage"] == "fuse"}
    assert sorted(fused) == sorted(three)
    assert all(hits[0]["document_id"] == "leave" for hits in fused.values())
    assert search(admin, collections=three)["trace"] is None


def test_a_query_is_embedded_once_for_all(admin: TestClient, three: list[str]) -> None:
    before = counters.snapshot()["embedding_calls"]
    search(admin, query="a question that nobody asked before", collections=three)
    assert counters.snapshot()["embedding_calls"] == before + 1


def test_each_collection_is_asked_what_its_own_defaults_make_of_the_query(
    admin: TestClient, three: list[str], request: pytest.FixtureRequest
) -> None:
    query = '"parental leave" in the office'
    admin.patch("/v1/collections/east", json={"defaults": {"query_syntax": "simple"}})
    admin.patch("/v1/collections/west", json={"defaults": {"queries": ["engines need oil"], "top_k": 2}})
    request.addfinalizer(
        lambda: [admin.patch(f"/v1/collections/{name}", json={"defaults": {}}) for name in ("east", "west")]
    )
    both = search(admin, query=query, collections=["east", "west"], top_k=4, mode="dense")["data"]
    for name in ("east", "west"):
        alone = search(admin, query=query, collections=[name], top_k=4, mode="dense")["data"]
        assert [hit["scores"]["dense"] for hit in both if hit["collection"] == name] == [
            hit["scores"]["dense"] for hit in alone
        ]


def test_facets_are_added_up(admin: TestClient, three: list[str]) -> None:
    facets = search(admin, collections=three, facets=["kind"])["facets"]
    assert {each["value"]: each["count"] for each in facets["kind"]} == {"leave": 3, "engine": 3}


def test_a_key_sees_its_own_collections_alone(
    admin: TestClient, three: list[str], key_for: Callable[..., TestClient]
) -> None:
    key = key_for("search", "east", "north", filter={"field": "kind", "op": "eq", "value": "engine"})
    reply = search(key)
    assert {hit["collection"] for hit in reply["data"]} == {"east", "north"}
    assert {hit["document_id"] for hit in reply["data"]} == {"engine"}
    foreign = key.post("/v1/search", json={"query": "x", "collections": ["east", "west"]})
    absent = key.post("/v1/search", json={"query": "x", "collections": ["east", "nowhere"]})
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.json()["detail"].replace("west", "nowhere") == absent.json()["detail"]


def test_a_cursor_belongs_to_one_collection(admin: TestClient, three: list[str]) -> None:
    answer = admin.post("/v1/search", json={"query": "x", "collections": three, "cursor": "x"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/cursor")


def test_no_collections_are_an_error(admin: TestClient) -> None:
    assert admin.post("/v1/search", json={"query": "x", "collections": []}).status_code == 422
    many = admin.post("/v1/search", json={"query": "x", "collections": [f"c{n}" for n in range(99)]})
    assert many.status_code in (404, 422)
