"""Every option of a search, at the door."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from app.settings import Settings


@pytest.fixture(scope="module")
def library(admin: TestClient) -> str:
    """A collection of nine notes of two teams."""
    admin.put("/v1/collections/search-options", json={})
    documents = [
        {
            "id": f"note-{number}",
            "text": f"# Leave\n\nThe leave rule number {number} is about parents and their working days.\n\n# Pay\n\nx",
            "metadata": {"team": "hr" if number % 2 else "it", "tags": ["a", str(number)]},
        }
        for number in range(9)
    ]
    answer = admin.post(
        "/v1/collections/search-options/documents", json={"documents": documents}, headers={"Prefer": "wait=60"}
    )
    assert all(item["status"] == 201 for item in answer.json()["results"]), answer.text
    return "search-options"


def found(admin: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = admin.post("/v1/collections/search-options/search", json={"query": "leave rule of parents", **body})
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def refused(admin: TestClient, body: dict[str, Any]) -> list[tuple[str, str]]:
    answer = admin.post("/v1/collections/search-options/search", json={"query": "leave", **body})
    assert answer.status_code == 422, answer.text
    return [(error["pointer"], error["code"]) for error in answer.json()["errors"]]


def test_pages_by_cursor_hold_every_hit_once(admin: TestClient, library: str) -> None:
    cursor, ids = None, []
    for _ in range(5):
        reply = found(admin, {"top_k": 4, "mode": "keyword", **({"cursor": cursor} if cursor else {})})
        ids += [hit["document_id"] for hit in reply["data"]]
        cursor = reply["next_cursor"]
        assert reply["has_more"] == (cursor is not None)
        if cursor is None:
            break
    assert sorted(ids) == [f"note-{number}" for number in range(9)]


def test_top_k_above_the_maximum_names_it(admin: TestClient, library: str) -> None:
    answer = admin.post(f"/v1/collections/{library}/search", json={"query": "leave", "top_k": 201})
    assert answer.status_code == 422
    assert str(Settings().max_top_k) in answer.json()["detail"]


def test_facets_count_the_documents_of_the_whole_result(admin: TestClient, library: str) -> None:
    reply = found(admin, {"top_k": 1, "facets": ["team", "tags"]})
    assert reply["facets"]["team"] == [{"value": "it", "count": 5}, {"value": "hr", "count": 4}]
    assert reply["facets"]["tags"][0] == {"value": "a", "count": 9}


def test_expansion_gives_exact_text_around_a_hit(admin: TestClient, library: str) -> None:
    reply = found(admin, {"top_k": 1, "expand": {"document": True, "max_characters": 1000}})
    [hit] = reply["data"]
    text = admin.get(f"/v1/collections/{library}/documents/{hit['document_id']}/text").text
    context = hit["context"]
    assert context["text"] == text[context["start"] : context["end"]]
    assert (context["start"], context["truncated"]) == (0, False)


def test_explain_tells_what_each_stage_gave(admin: TestClient, library: str) -> None:
    reply = found(admin, {"explain": True, "diversity": {"lambda": 0.5, "near_duplicates": None}})
    stages = {stage["stage"]: stage for stage in reply["trace"]}
    assert {"scope", "keyword", "fuse", "diversify", "arrange"} <= stages.keys()
    assert stages["scope"]["facts"]["documents"] is None
    assert stages["fuse"]["hits"][0]["chunk_id"]
    assert [weight["leg"] for weight in stages["fuse"]["facts"]["weights"]] == ["dense", "keyword"]
    assert stages["fuse"]["count"] == len(stages["fuse"]["hits"])
    assert "trace" not in {name for name, value in found(admin, {}).items() if value is not None}


def test_a_trace_shows_no_document_that_the_filter_hides(admin: TestClient, library: str) -> None:
    team = {"field": "team", "op": "eq", "value": "hr"}
    reply = found(admin, {"explain": True, "filter": team})
    named = {hit["document_id"] for stage in reply["trace"] for hit in stage["hits"] or ()}
    assert named
    assert all(int(name.removeprefix("note-")) % 2 for name in named)
    assert next(stage for stage in reply["trace"] if stage["stage"] == "scope")["facts"]["documents"] == 4


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"diversity": {"lamda": 0.5}}, ("/diversity/lamda", "unknown_field")),
        ({"diversity": {"lambda_": 0.5}}, ("/diversity/lambda_", "unknown_field")),
        ({"min_score": 0.5}, ("/min_score", "needs_score")),
        ({"min_score": 0.5, "min_score_on": "dense", "mode": "keyword"}, ("/min_score_on", "no_such_leg")),
        ({"rerank": {"candidates": 3}}, ("/rerank/candidates", "too_small")),
        ({"rerank": {"candidates": 300}, "candidates": 200}, ("/rerank/candidates", "too_large")),
        ({"rerank": {"timeout_seconds": 999.0}}, ("/rerank/timeout_seconds", "out_of_range")),
        ({"queries": ["a"] * 9}, ("/queries", "too_many")),
        ({"queries": ["a", " "]}, ("/queries/1", "empty")),
        ({"transform": {"multi_query": 99}}, ("/transform/multi_query", "out_of_range")),
        ({"expand": {"neighbours": 99}}, ("/expand/neighbours", "out_of_range")),
        ({"expand": {"max_characters": 9_999_999}}, ("/expand/max_characters", "out_of_range")),
        ({"cursor": "x"}, ("/cursor", "invalid_cursor")),
    ],
)
def test_a_wrong_option_is_named(admin: TestClient, library: str, body: dict[str, Any], error: tuple[str, str]) -> None:
    assert refused(admin, body) == [error]


def test_a_preset_says_which_part_the_collection_lacks(admin: TestClient, library: str) -> None:
    reply = found(admin, {"preset": "ultimate"})
    codes = {warning["code"] for warning in reply["warnings"]}
    # The hashed embedder of these tests gives no vectors of tokens.
    assert codes == {"no_parent_vectors", "no_content_vectors", "no_language_model", "rerank_unsupported"}
    assert reply["data"]


def test_a_collections_default_options_count_for_each_search(admin: TestClient) -> None:
    body = {"defaults": {"max_per_document": 1, "diversity": {"lambda": 0.6}, "top_k": 2}}
    made = admin.put("/v1/collections/with-defaults", json=body)
    assert made.json()["defaults"] == body["defaults"]
    for default in ({"min_score": 1.0}, {"cursor": "x"}):
        wrong = admin.put("/v1/collections/with-wrong", json={"defaults": default})
        assert [error["pointer"] for error in wrong.json()["errors"]] == [f"/defaults/{next(iter(default))}"]
