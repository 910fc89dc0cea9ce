"""Which order the hits of several collections get: by the scores of one reranker, else by rank."""

from typing import Any

import numpy as np
import pytest

from app.domain import LegScore, Passage
from app.inference.reranker_registry import Rerankers
from app.retrieval.plan import DiversityOptions, RerankOptions
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import SearchResult, search
from app.retrieval.several import Target, search_several
from app.settings import Settings


def passage(collection: str, rank: int, score: float, score_type: str) -> Passage:
    return Passage(
        rank=rank,
        chunk_id=f"{collection}{rank}",
        document_id="d",
        collection=collection,
        title="",
        text="",
        start=0,
        end=0,
        page_start=None,
        page_end=None,
        heading_path=(),
        score=score,
        score_type=score_type,
        legs={"dense": LegScore(0.5, rank)},
        fused=None,
        metadata={},
        rerank=score if score_type == "rerank" else None,
    )


def result(collection: str, reranker: str | None, *scores: float) -> SearchResult:
    score_type = "rerank" if reranker else "rrf"
    found = tuple(passage(collection, rank, score, score_type) for rank, score in enumerate(scores, start=1))
    return SearchResult(found, ("q",), "hybrid", reranker=None if reranker == "order" else reranker)


class Ones(Rerankers):
    """A reranker of any name that likes everything."""

    window_tokens = None

    def get(self, name: str, asked: Any) -> Any:
        return self

    def scores(self, query: str, texts: Any, *, timeout_seconds: float) -> Any:
        return np.ones(len(texts), np.float32)


def together(*results: SearchResult) -> list[str]:
    targets = [Target(str(place), lambda _, one=one: one) for place, one in enumerate(results)]
    return [each.chunk_id for each in search_several(targets, 10).passages]


def test_scores_of_one_reranker_order_all() -> None:
    assert together(result("a", "lexical", 0.3, 0.2), result("b", "lexical", 0.9, 0.8)) == ["b1", "b2", "a1", "a2"]


@pytest.mark.parametrize("other", ["http", "order", None])
def test_scores_of_two_rerankers_are_not_compared(other: str | None) -> None:
    assert together(result("a", "lexical", 0.3, 0.2), result("b", other, 9.0, 8.0)) == ["a1", "b1", "a2", "b2"]


def test_scores_that_tell_the_order_of_one_list_alone_are_not_compared() -> None:
    assert together(result("a", "order", 1.0, 0.5), result("b", "order", 1.0, 0.9)) == ["a1", "b1", "a2", "b2"]


def test_a_collection_where_nothing_was_found_takes_no_part() -> None:
    assert together(result("a", "lexical", 0.3), result("b", None), result("c", "lexical", 0.9)) == ["c1", "a1"]


def test_the_order_that_a_collection_gave_its_hits_is_kept() -> None:
    """Diversity puts a hit with a lower score before one with a higher."""
    assert together(result("a", "lexical", 0.5, 0.1, 0.4), result("b", "lexical", 0.3)) == ["a1", "b1", "a2", "a3"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (RerankOptions(), "lexical"),
        (RerankOptions("http"), "http"),
        (RerankOptions("embedding"), "embedding hashed 384"),
        (RerankOptions("llm"), "llm"),
        (RerankOptions("llm", method="listwise"), None),
    ],
)
def test_a_result_names_the_reranker_whose_scores_may_be_compared(shelf: Any, options: Any, name: Any) -> None:
    shelf.put("d", "herons wade")
    models = Models(shelf.embedder, rerankers=Ones(Settings(), None))
    for more in {}, {"min_score": 0.1}, {"diversity": DiversityOptions()}:
        plan = build_plan("heron", shelf.settings, rerank=options, **more)
        assert search(shelf.opened, models, "shelf", plan).reranker == name
    assert shelf.search("heron").reranker is None
