import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest, Misconfigured, RerankUnavailable, UpstreamRejected
from app.inference.reranker_registry import Rerankers
from app.retrieval import reranking
from app.retrieval.plan import RerankOptions
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import SearchResult, search
from app.settings import Settings

TEXTS = ("heron one heron", "heron two two two", "heron three", "walrus")


class Scripted:
    """A reranker that scores by a function of the text."""

    def __init__(self, score: Callable[[str], float], window: int | None = None) -> None:
        self.score = score
        self.window_tokens = window
        self.queries: list[str] = []
        self.texts: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> Any:
        self.queries.append(query)
        self.texts += texts
        return np.array([self.score(text) for text in texts], np.float32)

    def close(self) -> None: ...


class OneReranker(Rerankers):
    """Rerankers that all are the same one."""

    def __init__(self, reranker: Any) -> None:
        super().__init__(Settings(), None)
        self.reranker = reranker

    def get(self, name: str, asked: Any) -> Any:
        return self.reranker


@pytest.fixture
def shelves(shelf: Any) -> Callable[..., SearchResult]:
    """Search the shelf, by keywords unless told otherwise, with a reranker of the test's own."""
    for place, text in enumerate(TEXTS):
        shelf.put(f"d{place}", text)

    def find(reranker: Any, query: str = "heron", **options: Any) -> SearchResult:
        rerank = RerankOptions(**{"candidates": 10, **options.pop("rerank", {})})
        plan = build_plan(query, shelf.settings, **{"mode": "keyword", "rerank": rerank, **options})
        rerankers = reranker if isinstance(reranker, Rerankers) else OneReranker(reranker)
        return search(shelf.opened, Models(shelf.embedder, rerankers=rerankers), "shelf", plan)

    find.shelf = shelf  # type: ignore[attr-defined]
    return find


def ids(result: SearchResult) -> list[str]:
    return [passage.document_id for passage in result.passages]


def test_the_reranker_s_score_orders_the_list_and_is_told_beside_the_others(shelves):
    result = shelves(Scripted(lambda text: float("three" in text)))
    first = result.passages[0]
    assert (first.document_id, first.score, first.score_type, first.rerank) == ("d2", 1.0, "rerank", 1.0)
    assert first.legs["keyword"].rank > 0
    assert result.degraded == ()
    assert result.timings_ms["rerank"] >= 0


def test_equal_scores_keep_the_order_of_the_search(shelves):
    plain = shelves(Scripted(lambda _: 0.0), rerank={"candidates": 10})
    scores = [passage.legs["keyword"].rank for passage in plain.passages]
    assert scores == sorted(scores)


def test_only_the_first_candidates_are_scored_and_given(shelves):
    reranker = Scripted(lambda _: 1.0)
    result = shelves(reranker, top_k=2, rerank={"candidates": 2})
    assert len(reranker.texts) == len(result.passages) == 2


def test_the_reranker_reads_the_text_with_its_context(enhanced):
    reranker = Scripted(lambda _: 1.0)
    plan = build_plan("orchard", enhanced.settings, mode="keyword", rerank=RerankOptions())
    search(enhanced.opened, Models(enhanced.embedder, rerankers=OneReranker(reranker)), "shelf", plan)
    assert reranker.texts
    assert all(text.startswith("orchard") for text in reranker.texts)


@pytest.mark.parametrize(
    "error", [RerankUnavailable("it is down"), UpstreamRejected("nonsense"), Misconfigured("/etc/secret is no folder")]
)
def test_a_reranker_that_fails_leaves_the_order_and_says_so(shelves, error):
    def fail(_: str) -> float:
        raise error

    result = shelves(Scripted(fail))
    assert len(ids(result)) == 3
    assert result.passages[0].score_type == "bm25"
    assert result.degraded == ("rerank",)
    [warning] = result.warnings
    assert (warning.code, "alone" in warning.detail, "secret" in warning.detail) == (error.code, True, False)


def test_a_reranker_that_hangs_is_left_alone_in_time(shelves):
    released = threading.Event()
    began = time.monotonic()
    result = shelves(Scripted(lambda _: float(released.wait(30))), rerank={"timeout_seconds": 0.2})
    assert time.monotonic() - began < 20
    assert (result.degraded, len(result.passages)) == (("rerank",), 3)
    assert [warning.code for warning in result.warnings] == ["rerank_unavailable"]
    released.set()


def test_more_hanging_ones_than_threads_never_make_a_queue(shelves, monkeypatch):
    monkeypatch.setattr(reranking, "_free", threading.BoundedSemaphore(1))
    released = threading.Event()
    shelves(Scripted(lambda _: float(released.wait(30))), rerank={"timeout_seconds": 0.05})
    began = time.monotonic()
    result = shelves(Scripted(lambda _: 1.0), rerank={"timeout_seconds": 9})
    assert time.monotonic() - began < 20
    assert result.degraded == ("rerank",)
    assert "in work already" in result.warnings[0].detail
    released.set()


def test_a_failure_of_our_own_is_not_hidden_as_a_degraded_answer(shelves):
    def fail(_: str) -> float:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        shelves(Scripted(fail))


def test_a_search_without_rerankers_says_that_it_has_none(shelves):
    shelf = shelves.shelf
    plan = build_plan("heron", shelf.settings, mode="keyword", rerank=RerankOptions())
    result = search(shelf.opened, Models(shelf.embedder), "shelf", plan)
    assert result.degraded == ("rerank",)


def test_a_reranker_that_the_collection_cannot_have_is_refused(shelves):
    with pytest.raises(InvalidRequest) as raised:
        shelves(Rerankers(Settings(), None), mode="hybrid", rerank={"model": "embedding"})
    assert raised.value.code == "rerank_unsupported"


def test_nothing_found_needs_no_reranker(shelves):
    reranker = Scripted(lambda _: 1.0)
    assert ids(shelves(reranker, query="carrots")) == []
    assert reranker.queries == []


def test_a_long_passage_is_scored_by_windows_and_its_best_one_counts(shelves):
    shelf = shelves.shelf
    shelf.put("long", "heron " + "filler words go on. " * 1500 + "the needle stands here")
    reranker = Scripted(lambda text: float("needle" in text), window=50)
    result = shelves(reranker, explain=True)
    assert (ids(result)[0], result.passages[0].score) == ("long", 1.0)
    assert max(len(text.split()) for text in reranker.texts) <= 49
    assert len(reranker.texts) > 100
    assert "needle" in "".join(reranker.texts)


def test_a_query_that_leaves_no_room_is_cut_with_a_warning(shelves):
    reranker = Scripted(lambda _: 1.0, window=20)
    result = shelves(reranker, query="heron " * 200)
    assert all(len(query.split()) <= 10 for query in reranker.queries)
    assert [warning.code for warning in result.warnings] == ["rerank_query_cut"]


@pytest.mark.parametrize("mode", ["keyword", "dense", "hybrid"])
def test_words_rerank_whatever_leg_found_the_hits(shelves, mode):
    result = shelves(Rerankers(Settings(), None), query="two heron", mode=mode, rerank={"model": "lexical"})
    assert ids(result)[0] == "d1"
    assert 0 < result.passages[0].score < 1
