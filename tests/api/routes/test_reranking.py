"""Reranking and minimum scores, at the door."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

NOTES = {
    "leave": "Each parent may take 320 days of parental leave.",
    "invoices": "Invoices are paid within thirty days after they came.",
    "budget": "The council decides on the budget in November.",
}


def search(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/collections/notes/search", json=body)
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def store(client: TestClient, document_id: str, text: str, **members: Any) -> None:
    path = f"/v1/collections/notes/documents/{document_id}"
    answer = client.put(path, json={"text": text, **members}, headers={"Prefer": "wait=30"})
    assert answer.status_code == 201, answer.text


@pytest.fixture
def notes(started: Callable[..., TestClient], judge: Any) -> TestClient:
    """A service with a rerank server and a language model that judge well, and three notes on finance."""
    client = started(
        rerank_base_url=judge.url, language_model="judge", language_model_base_url=judge.url, rerank_timeout_seconds=5
    )
    client.put("/v1/collections/notes", json={})
    for document_id, text in NOTES.items():
        store(client, document_id, text)
    return client


@pytest.mark.parametrize(
    "rerank",
    [
        {"model": "lexical"},
        {"model": "http"},
        {"model": "llm"},
        {"model": "llm", "method": "listwise"},
    ],
    ids=lambda options: " ".join(options.values()),
)
def test_each_reranker_is_one_field_and_its_score_orders_the_list(notes: TestClient, rerank: Any) -> None:
    reply = search(notes, query="days of parental leave", rerank=rerank)
    hits = reply["data"]
    assert (hits[0]["document_id"], reply["degraded"]) == ("leave", [])
    assert {hit["score_type"] for hit in hits} == {"rerank"}
    assert [hit["score"] for hit in hits] == [hit["scores"]["rerank"] for hit in hits]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert hits[0]["scores"]["fused"] > 0
    assert reply["timings_ms"]["rerank"] >= 0


def test_the_minimum_applies_to_the_returned_score_not_to_that_of_a_leg(notes: TestClient) -> None:
    asked = {"query": "days of parental leave", "rerank": {"model": "http"}, "fusion": {"method": "rrf"}}
    every = search(notes, **asked)["data"]
    first = every[0]
    least = first["score"] - 0.01
    assert first["scores"]["dense"]["score"] < least
    assert first["scores"]["fused"] < least
    kept = search(notes, **asked, min_score=least)["data"]
    assert [hit["document_id"] for hit in kept] == ["leave"]


@pytest.mark.parametrize("options", [{"rerank": {"model": "lexical"}}, {"min_score_on": "dense"}])
def test_a_question_beside_the_subject_is_empty_above_a_minimum_and_seen_without(
    notes: TestClient, options: Any
) -> None:
    seen = search(notes, query="carrots")["data"]
    assert all(hit["scores"]["dense"]["score"] < 0.2 and hit["scores"].get("keyword") is None for hit in seen)
    assert search(notes, query="carrots", min_score=0.2, **options)["data"] == []
    found = search(notes, query="when does the council decide on the budget", min_score=0.2, **options)["data"]
    assert found[0]["document_id"] == "budget"


def test_a_reranker_that_sleeps_gives_the_search_s_own_order_in_time(notes: TestClient, judge: Any) -> None:
    plain = [hit["document_id"] for hit in search(notes, query="thirty days")["data"]]
    judge.respond = lambda _: judge.released.wait(60) and None
    began = time.monotonic()
    reply = search(notes, query="thirty days", rerank={"model": "http", "timeout_seconds": 0.3}, min_score=0.9)
    assert time.monotonic() - began < 20
    assert [hit["document_id"] for hit in reply["data"]] == plain
    assert reply["degraded"] == ["rerank"]
    assert [warning["code"] for warning in reply["warnings"]] == ["rerank_unavailable", "min_score_not_applied"]
    assert reply["data"][0]["score_type"] == "relative"
    assert reply["data"][0]["scores"].get("rerank") is None


@pytest.mark.parametrize(
    ("status", "code"), [(401, "upstream_auth"), (404, "upstream_rejected"), (500, "rerank_unavailable")]
)
def test_a_failing_rerank_server_degrades_without_its_words(
    notes: TestClient, judge: Any, status: int, code: str
) -> None:
    judge.respond = lambda _: judge.Reply(status, {"error": f"secret of {judge.url}"})
    reply = search(notes, query="thirty days", rerank={"model": "http"})
    assert (reply["degraded"], [warning["code"] for warning in reply["warnings"]]) == (["rerank"], [code])
    assert "secret" not in str(reply)
    assert judge.url not in str(reply)


def test_a_long_passage_is_scored_by_windows_of_which_none_is_left_out(
    started: Callable[..., TestClient], judge: Any
) -> None:
    """The only sentence that answers stands at the end of 30,000 characters in one chunk."""
    remote = {"embedder": "openai_compatible", "embedding_base_url": judge.url, "embedding_model": "wide"}
    client = started(rerank_base_url=judge.url, embedding_window_tokens=60_000, **remote)
    client.put("/v1/collections/notes", json={})
    store(client, "leave", NOTES["leave"])
    text = "The minutes go on about the weather. " * 811 + "The heron nests on the roof of the town hall."
    store(client, "minutes", text, chunking={"strategy": "none"})
    question = "heron nests on the roof of the town hall"
    judge.sent.clear()
    reply = search(client, query=question, rerank={"model": "http", "timeout_seconds": 9}, explain=True)
    assert (reply["data"][0]["document_id"], reply["degraded"]) == ("minutes", [])
    assert reply["data"][0]["score"] == 1
    assert reply["data"][0]["text"] == text
    documents = [part for sent in judge.sent for part in sent.body.get("documents", [])]
    windows = [part for part in documents if "minutes go on" in part]
    assert len(windows) > 10
    assert sum(map(len, windows)) >= len(text)
    (stage,) = [stage for stage in reply["trace"] if stage["stage"] == "rerank"]
    assert stage["facts"]["windows"] == len(documents)


def test_what_this_service_does_not_have_is_refused_by_its_setting(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "d", "The kangaroo eats grass")
    for model, setting in (("http", "FOOTNOTE_RERANK_BASE_URL"), ("cross_encoder", "FOOTNOTE_CROSS_ENCODER")):
        answer = admin.post(
            f"/v1/collections/{collection}/search", json={"query": "kangaroo", "rerank": {"model": model}}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "rerank_unsupported")
        assert setting in answer.json()["hint"]


def test_scores_of_different_rerankers_are_never_put_in_one_order(notes: TestClient) -> None:
    """Each collection may have a reranker of its own by default, on a scale of its own."""
    notes.put("/v1/collections/more", json={})
    document = "/v1/collections/more/documents/leave"
    notes.put(document, json={"text": "Leave of parents takes days"}, headers={"Prefer": "wait=30"})

    def score_types(first: Any, second: Any) -> set[str]:
        for name, rerank in ("notes", first), ("more", second):
            notes.patch(f"/v1/collections/{name}", json={"defaults": {"rerank": rerank}})
        answer = notes.post("/v1/search", json={"query": "days of parental leave", "collections": ["notes", "more"]})
        assert answer.json()["degraded"] == []
        return {hit["score_type"] for hit in answer.json()["data"]}

    assert score_types({"model": "lexical"}, {"model": "lexical", "candidates": 50}) == {"rerank"}
    assert score_types({"model": "http"}, {"model": "http"}) == {"rerank"}
    assert score_types({"model": "lexical"}, {"model": "http"}) == {"rrf"}
    assert score_types({"model": "llm", "method": "listwise"}, {"model": "llm", "method": "listwise"}) == {"rrf"}
