from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable, RerankUnavailable
from app.inference.reranker_registry import Rerankers
from app.retrieval.plan import RerankOptions
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import SearchResult, search
from app.settings import Settings

FINANCE = ("the budget of the council", "taxes are due in April", "an invoice is paid in thirty days")


class Fixed(Rerankers):
    """A reranker that gives these scores, in the order in which the hits come, or fails."""

    def __init__(self, *scores: float) -> None:
        super().__init__(Settings(), None)
        self.fixed = scores

    def get(self, name: str, asked: Any) -> Any:
        return self

    window_tokens = None

    def scores(self, query: str, texts: Any, *, timeout_seconds: float) -> Any:
        if not self.fixed:
            raise RerankUnavailable("down")
        return np.array(self.fixed[: len(texts)], np.float32)


@pytest.fixture
def find(shelf: Any) -> Callable[..., SearchResult]:
    for place, text in enumerate(FINANCE):
        shelf.put(f"d{place}", text)

    def find_in_shelf(query: str, reranker: Rerankers | None = None, **options: Any) -> SearchResult:
        plan = build_plan(query, shelf.settings, rerank=RerankOptions() if reranker else None, **options)
        return search(shelf.opened, Models(shelf.embedder, rerankers=reranker), "shelf", plan)

    find_in_shelf.shelf = shelf  # type: ignore[attr-defined]
    return find_in_shelf


def ids(result: SearchResult) -> list[str]:
    return [passage.document_id for passage in result.passages]


def test_the_minimum_is_held_against_the_score_that_is_returned(find):
    """The dense score of the hit is far below the minimum, the reranker's is above: it stays."""
    result = find("budget taxes invoice", Fixed(0.9, 0.5, 0.7), min_score=0.6)
    assert [round(passage.score, 1) for passage in result.passages] == [0.9, 0.7]
    assert all(passage.legs["dense"].score < 0.9 for passage in result.passages if "dense" in passage.legs)


def test_a_hit_at_the_minimum_stays(find):
    assert len(find("budget taxes invoice", Fixed(0.75, 0.5, 0.25), min_score=0.5).passages) == 2


def test_a_reranker_that_fails_takes_its_minimum_with_it_and_says_so(find):
    result = find("budget taxes invoice", Fixed(), min_score=0.99)
    assert len(result.passages) == 3
    assert result.degraded == ("rerank",)
    assert [warning.code for warning in result.warnings] == ["rerank_unavailable", "min_score_not_applied"]


@pytest.mark.parametrize("options", [{"mode": "dense"}, {"mode": "dense", "queries": ("taxes",)}])
def test_the_minimum_of_one_leg_is_held_against_its_own_score(find, options):
    every = find("budget of the council", **options)
    least = max(passage.legs["dense"].score for passage in every.passages)
    kept = find("budget of the council", min_score=least - 1e-6, **options)
    assert 0 < len(kept.passages) < len(every.passages)


def test_a_hit_that_the_dense_leg_did_not_list_gets_its_exact_cosine(find):
    """With one candidate each, the keyword leg's hit is not in the dense list; its cosine still decides."""
    query = "council council budget thirty"
    options = {"candidates": 1, "top_k": 1}
    cosines = {p.document_id: p.legs["dense"].score for p in find(query, mode="dense", top_k=3).passages}
    for least in (min(cosines.values()) - 0.01, max(cosines.values()) + 0.01):
        kept = find(query, min_score=least, min_score_on="dense", **options)
        assert bool(kept.passages) == (least < min(cosines.values()))


def test_a_question_beside_the_subject_finds_nothing_above_a_calibrated_minimum(find):
    aside = find("carrots", min_score=0.2, min_score_on="dense")
    assert ids(aside) == []
    assert ids(find("budget of the council", min_score=0.2, min_score_on="dense"))[0] == "d0"


def test_a_hit_without_a_word_of_the_query_has_no_keyword_score(find):
    assert ids(find("invoice", min_score=0.0001, min_score_on="keyword")) == ["d2"]


def test_the_minimum_of_a_leg_that_failed_is_not_applied_and_that_is_told(find):
    find.shelf.embedder.failure = EmbeddingUnavailable("down")
    result = find("budget taxes", min_score=0.99, min_score_on="dense")
    assert len(result.passages) == 2
    assert "min_score_not_applied" in [warning.code for warning in result.warnings]
