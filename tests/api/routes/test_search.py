from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

ODD_QUERIES = [
    "ubuntu 20.04",
    "multi-agent",
    "don't",
    "a/b",
    '"unbalanced',
    "NEAR(",
    "*",
    "col:val",
    "AND OR NOT",
    "🦘",
    "\\",
    "'; DROP TABLE chunks; --",
    "^~!?",
    "\u0000 words",
    "words " * 2000,
]


@pytest.fixture(scope="module")
def animals(admin: TestClient) -> str:
    admin.put("/v1/collections/animals", json={})
    documents = [
        {
            "id": f"d{number}",
            "text": f"The kangaroo number {number} eats grass",
            "metadata": {"lang": lang, "n": number},
        }
        for number, lang in enumerate(["en"] * 15 + ["fi"] * 5)
    ]
    answer = admin.post(
        "/v1/collections/animals/documents", json={"documents": documents}, headers={"Prefer": "wait=60"}
    )
    assert all(item["status"] == 201 for item in answer.json()["results"]), answer.text
    return "animals"


@pytest.mark.parametrize("query", ODD_QUERIES)
@pytest.mark.parametrize("mode", ["dense", "keyword", "hybrid"])
def test_no_query_is_an_error(admin: TestClient, animals: str, query: str, mode: str) -> None:
    answer = admin.post(f"/v1/collections/{animals}/search", json={"query": query, "mode": mode})
    assert answer.status_code == 200, answer.text
    assert answer.json()["query"] == {"original": query, "used": answer.json()["query"]["used"], "mode": mode}


def test_a_passage_tells_each_leg_and_the_score_that_ordered_it(admin: TestClient, animals: str) -> None:
    answer = admin.post(f"/v1/collections/{animals}/search", json={"query": "kangaroo number 3", "top_k": 3}).json()
    hit = answer["data"][0]
    assert [found["rank"] for found in answer["data"]] == [1, 2, 3]
    assert (hit["document_id"], hit["score_type"], hit["score"]) == ("d3", "relative", hit["scores"]["fused"])
    assert set(hit["found_by"]) == {"dense", "keyword"}
    assert hit["scores"]["keyword"]["rank"] == 1
    assert hit["metadata"] == {"lang": "en", "n": 3}
    assert answer["degraded"] == []
    assert {"embed", "dense", "keyword", "fuse", "hydrate", "total"} <= answer["timings_ms"].keys()


@pytest.mark.parametrize("mode", ["dense", "keyword", "hybrid"])
def test_a_filter_never_costs_hits(admin: TestClient, animals: str, mode: str) -> None:
    body = {"query": "kangaroo", "mode": mode, "filter": {"field": "lang", "op": "eq", "value": "fi"}, "top_k": 5}
    answer = admin.post(f"/v1/collections/{animals}/search", json=body).json()
    assert {hit["document_id"] for hit in answer["data"]} == {"d15", "d16", "d17", "d18", "d19"}
    only = admin.post(f"/v1/collections/{animals}/search", json=body | {"document_ids": ["d16", "d1"]}).json()
    assert [hit["document_id"] for hit in only["data"]] == ["d16"]


def test_a_field_that_no_document_has_is_a_warning(admin: TestClient, animals: str) -> None:
    body = {"query": "kangaroo", "filter": {"field": "lnag", "op": "eq", "value": "fi"}}
    answer = admin.post(f"/v1/collections/{animals}/search", json=body).json()
    assert answer["data"] == []
    assert [warning["code"] for warning in answer["warnings"]] == ["unknown_metadata_field"]


def test_a_collection_s_defaults_hold_until_the_request_says_otherwise(admin: TestClient, animals: str) -> None:
    path = f"/v1/collections/{animals}"
    defaults = {"top_k": 2, "candidates": 3, "mode": "keyword", "filter": {"field": "lang", "op": "eq", "value": "fi"}}
    admin.patch(path, json={"defaults": defaults})
    try:
        quiet = admin.post(f"{path}/search", json={"query": "kangaroo"}).json()
        assert (len(quiet["data"]), quiet["query"]["mode"]) == (2, "keyword")
        assert {hit["metadata"]["lang"] for hit in quiet["data"]} == {"fi"}
        loud = admin.post(f"{path}/search", json={"query": "kangaroo", "top_k": 10, "mode": "dense", "filter": None})
        assert (len(loud.json()["data"]), loud.json()["query"]["mode"]) == (10, "dense")
    finally:
        admin.patch(path, json={"defaults": {}})


def test_fixed_weights_and_scores_can_be_chosen(admin: TestClient, animals: str) -> None:
    path = f"/v1/collections/{animals}/search"
    for fusion, score_type in (
        ({"method": "rrf", "k": 60, "weights": {"dense": 1, "keyword": 0.5}}, "rrf"),
        ({"method": "weighted", "alpha": 0.5}, "weighted"),
        ({"method": "weighted"}, "weighted"),
        ({"method": "weighted", "normalisation": "z_score"}, "weighted"),
        ({"method": "relative", "alpha": 0.5}, "relative"),
        ({}, "relative"),
        ({"k": 1}, "rrf"),
    ):
        answer = admin.post(path, json={"query": "kangaroo", "fusion": fusion}).json()
        assert answer["data"][0]["score_type"] == score_type


def test_a_search_before_the_first_document_is_empty(admin: TestClient, collection: str) -> None:
    for mode in ("dense", "keyword", "hybrid"):
        answer = admin.post(f"/v1/collections/{collection}/search", json={"query": "x", "mode": mode})
        assert (answer.status_code, answer.json()["data"]) == (200, [])


def test_a_collection_of_a_model_that_is_no_longer_configured_says_so(
    started: Callable[..., TestClient], model_server: Any, tmp_path: Path
) -> None:
    remote = {"embedder": "openai_compatible", "embedding_base_url": model_server.url, "embedding_model": "remote"}
    before = started(data=tmp_path / "moved", **remote)
    before.put("/v1/collections/c", json={})
    before.put("/v1/collections/c/documents/d", json={"text": "alpha"}, headers={"Prefer": "wait=30"})
    after = started(data=tmp_path / "moved")
    refused = after.post("/v1/collections/c/search", json={"query": "alpha"})
    assert (refused.status_code, refused.json()["code"]) == (409, "embedding_model_mismatch")
    assert "remote" in refused.json()["detail"]


def test_a_model_server_that_is_down_degrades_or_is_unavailable(
    started: Callable[..., TestClient], model_server: Any
) -> None:
    client = started(embedder="openai_compatible", embedding_base_url=model_server.url, embedding_model="remote")
    client.put("/v1/collections/c", json={})
    wait = {"Prefer": "wait=30"}
    assert client.put("/v1/collections/c/documents/d", json={"text": "alpha"}, headers=wait).status_code == 201
    model_server.respond = lambda _: model_server.Reply(503, {"error": f"secret {model_server.url}"})
    path = "/v1/collections/c"
    dense = client.post(f"{path}/search", json={"query": "alpha", "mode": "dense"})
    assert (dense.status_code, dense.json()["code"]) == (503, "embedding_unavailable")
    hybrid = client.post(f"{path}/search", json={"query": "alpha"})
    assert (hybrid.status_code, hybrid.json()["degraded"]) == (200, ["dense"])
    assert [hit["document_id"] for hit in hybrid.json()["data"]] == ["d"]
    model_server.respond = lambda _: model_server.Reply(401, {"error": f"secret {model_server.url}"})
    refused = client.post(f"{path}/search", json={"query": "beta", "mode": "dense"})
    assert (refused.status_code, refused.json()["code"]) == (502, "upstream_auth")
    model_server.respond = lambda _: model_server.Reply(429, {}, {"Retry-After": "17"})
    busy = client.post(f"{path}/search", json={"query": "gamma", "mode": "dense"})
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "17")
    for answer in (dense, hybrid, refused, busy):
        assert "secret" not in answer.text
        assert model_server.url not in answer.text
