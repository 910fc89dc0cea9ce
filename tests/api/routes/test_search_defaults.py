"""What a collection's default options do to requests that ask for something else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

LEXICAL = {"rerank": {"model": "lexical"}, "min_score": 0.2}
COSINE = {"min_score": 0.1, "min_score_on": "dense"}


@pytest.fixture
def shelf(admin: TestClient, collection: str, put: Callable[..., Any]) -> Callable[..., Any]:
    """Ask a collection of these defaults at a door, and return the answer's JSON."""
    put(collection, "kangaroo", "The kangaroo eats grass and leaves")
    path = f"/v1/collections/{collection}"

    def ask(defaults: Any, body: Any, door: str) -> Any:
        changed = admin.patch(path, json={"defaults": defaults})
        assert changed.status_code == 200, changed.text
        if door == "ask":
            answer = admin.post(f"{path}/ask", json={"question": "what does the kangaroo eat", "search": body})
        elif door == "several":
            answer = admin.post("/v1/search", json={"query": "kangaroo grass", "collections": [collection], **body})
        else:
            answer = admin.post(f"{path}/search", json={"query": "kangaroo grass", **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def left_out(answer: Any) -> list[list[str]]:
    return [warning["options"] for warning in answer["warnings"] if warning["code"] == "default_left_out"]


@pytest.mark.parametrize("door", ["search", "several", "ask"])
@pytest.mark.parametrize(
    ("defaults", "body", "options"),
    [
        (LEXICAL, {"rerank": None}, ["min_score"]),
        (LEXICAL, {"rerank": None, "mode": "dense"}, ["min_score"]),
        (COSINE, {"mode": "keyword"}, ["min_score", "min_score_on"]),
        (COSINE, {"fusion": {"alpha": 0}}, ["min_score", "min_score_on"]),
        ({"mode": "dense", "min_score": 0.2}, {"mode": "keyword"}, ["min_score"]),
        ({"mode": "keyword"}, COSINE, ["mode"]),
    ],
)
def test_a_default_that_does_not_fit_the_request_is_left_out_and_told(
    shelf: Callable[..., Any], door: str, defaults: Any, body: Any, options: list[str]
) -> None:
    answer = shelf(defaults, body, door)
    assert left_out(answer) == [options]
    assert answer["sources" if door == "ask" else "data"]


@pytest.mark.parametrize(
    ("defaults", "body"),
    [
        (LEXICAL, {}),
        (COSINE, {}),
        (COSINE, {"min_score": None}),
        ({"top_k": 50}, {"candidates": 20}),
        ({"top_k": 50, "rerank": {}}, {"rerank": {"candidates": 10}}),
        ({"candidates": 20}, {"rerank": {"candidates": 40}}),
        ({"preset": "ultimate"}, {"preset": None}),
    ],
)
def test_defaults_that_fit_need_no_word(shelf: Callable[..., Any], defaults: Any, body: Any) -> None:
    assert shelf(defaults, body, "search")["warnings"] == []


@pytest.mark.parametrize("model", ["http", "cross_encoder", "llm", "embedding"])
def test_a_default_reranker_that_the_service_does_not_have_leaves_the_order(
    shelf: Callable[..., Any], model: str
) -> None:
    answer = shelf({"rerank": {"model": model}, "min_score": 0.5}, {}, "search")
    assert [warning["code"] for warning in answer["warnings"]] == ["rerank_unsupported", "min_score_not_applied"]
    assert len(answer["data"]) == 1


def test_a_search_that_cannot_be_narrowed_by_default_is_told(shelf: Callable[..., Any]) -> None:
    answer = shelf({"preset": "power"}, {"mode": "keyword"}, "search")
    assert [warning["code"] for warning in answer["warnings"]] == ["not_narrowed"]


def test_a_default_reranker_takes_no_keyword_search_from_a_collection_whose_model_is_gone(
    started: Callable[..., TestClient], model_server: Any, tmp_path: Path
) -> None:
    remote = {"embedder": "openai_compatible", "embedding_base_url": model_server.url, "embedding_model": "remote"}
    before = started(data=tmp_path / "moved", **remote)
    before.put("/v1/collections/c", json={"defaults": {"rerank": {"model": "embedding"}}})
    before.put("/v1/collections/c/documents/d", json={"text": "alpha"}, headers={"Prefer": "wait=30"})
    after = started(data=tmp_path / "moved")
    for rerank, status in ({}, 200), ({"rerank": {"model": "embedding"}}, 409):
        answer = after.post("/v1/collections/c/search", json={"query": "alpha", "mode": "keyword", **rerank})
        assert answer.status_code == status
        if status == 200:
            assert [hit["text"] for hit in answer.json()["data"]] == ["alpha"]
            assert [warning["code"] for warning in answer.json()["warnings"]] == ["rerank_unsupported"]
