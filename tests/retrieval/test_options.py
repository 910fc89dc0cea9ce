from typing import Any

import pytest

from app.errors import InvalidRequest
from app.filters import And, Condition, Operator
from app.retrieval.options import plan_search
from app.retrieval.plan import LegWeights, RankFusion, RelativeFusion, ScoreFusion
from app.settings import Settings

SETTINGS = Settings()
TEAM = {"field": "team", "op": "eq", "value": "hr"}


def test_what_is_given_wins_over_the_collections_defaults() -> None:
    plan = plan_search("q", SETTINGS, {"top_k": 3, "mode": "dense"}, {"top_k": 9, "candidates": 50})
    assert (plan.top_k, plan.mode, plan.candidates) == (3, "dense", 50)


def test_default_candidates_never_make_a_request_wrong() -> None:
    assert plan_search("q", SETTINGS, {"top_k": 80}, {"candidates": 50}).candidates == 80
    with pytest.raises(InvalidRequest):
        plan_search("q", SETTINGS, {"top_k": 80, "candidates": 50}, {})


@pytest.mark.parametrize(
    ("given", "defaults", "candidates"),
    [
        ({"rerank": {}, "candidates": 10}, {}, 10),
        ({"rerank": {}, "top_k": 80}, {}, 80),
        ({"preset": "ultimate", "top_k": 20}, {}, 20),
        ({"top_k": 50}, {"rerank": {"candidates": 30}}, 50),
        ({"candidates": 20}, {"rerank": {"candidates": 30}}, 20),
        ({"rerank": {"candidates": 7}}, {"candidates": 20}, 7),
    ],
)
def test_candidates_of_the_reranker_that_nobody_gave_never_make_a_request_wrong(
    given: Any, defaults: Any, candidates: int
) -> None:
    plan = plan_search("q", SETTINGS, given, defaults)
    assert plan.rerank is not None
    assert plan.rerank.candidates == candidates


def test_candidates_of_the_reranker_that_the_request_gives_are_held_to_its_others() -> None:
    with pytest.raises(InvalidRequest):
        plan_search("q", SETTINGS, {"rerank": {"candidates": 30}, "candidates": 20}, {})


def test_a_keys_filter_is_put_before_the_callers() -> None:
    forced = Condition("year", Operator.EQ, 2026)
    plan = plan_search("q", SETTINGS, {"filter": TEAM}, {}, forced_filter=forced)
    assert plan.filter == And((forced, Condition("team", Operator.EQ, "hr")))


@pytest.mark.parametrize(
    ("options", "fusion"),
    [
        (None, RelativeFusion("auto")),
        ({}, RelativeFusion("auto")),
        ({"alpha": 0.5}, RelativeFusion(0.5)),
        ({"method": "relative", "alpha": 0.25}, RelativeFusion(0.25)),
        ({"method": "rrf"}, RankFusion(10, "auto")),
        ({"k": 60}, RankFusion(60, "auto")),
        ({"method": "rrf", "k": 60, "weights": {"dense": 2}}, RankFusion(60, LegWeights(2, 1))),
        ({"weights": "auto"}, RankFusion()),
        ({"method": "weighted"}, ScoreFusion("auto", "min_max")),
        ({"normalisation": "z_score"}, ScoreFusion("auto", "z_score")),
        ({"method": "weighted", "alpha": 0.25}, ScoreFusion(0.25)),
    ],
)
def test_fusion_is_read_as_the_contract_writes_it(options: Any, fusion: Any) -> None:
    assert plan_search("q", SETTINGS, {} if options is None else {"fusion": options}, {}).fusion == fusion


def test_a_wrong_filter_is_named_where_it_stands() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_search("q", SETTINGS, {"filter": {"field": "a", "op": "gt", "value": []}}, {}, options_pointer="/search")
    assert caught.value.errors[0].pointer.startswith("/search/filter")
