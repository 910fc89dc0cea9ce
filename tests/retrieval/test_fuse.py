"""The legs' lists become one ranking, whatever their number."""

import numpy as np
import pytest

from app.indexes.port import Candidates
from app.retrieval.fuse import fuse, list_weights
from app.retrieval.fusion import automatic_keyword_weight
from app.retrieval.keyword import KeywordHits
from app.retrieval.legs import LegList, Legs
from app.retrieval.plan import LegWeights, RankFusion, RelativeFusion, ScoreFusion, SearchPlan


def candidates(**scores: float) -> Candidates:
    keys = [int(name[1:]) for name in scores]
    return Candidates(np.array(keys, np.int64), np.array(list(scores.values()), np.float32))


NEAR = candidates(_1=0.9, _2=0.85, _3=0.8)
WORDS = KeywordHits(candidates(_2=8.0, _4=6.0), {"a": 8.0, "b": 8.0}, strength=0.4)
MORE_WORDS = KeywordHits(candidates(_4=5.0), {"c": 50.0}, strength=0.1)

ONE_QUERY = Legs((LegList("dense", NEAR, WORDS), LegList("keyword", WORDS.candidates, WORDS)), WORDS.term_weights)
TWO_QUERIES = Legs(
    (
        LegList("dense", NEAR, WORDS),
        LegList("dense", candidates(_4=0.9, _1=0.7), MORE_WORDS),
        LegList("dense", candidates(_5=0.8)),
        LegList("keyword", WORDS.candidates, WORDS),
        LegList("keyword", MORE_WORDS.candidates, MORE_WORDS),
    ),
    WORDS.term_weights,
)


def scores(plan: SearchPlan, legs: Legs) -> dict[int, float]:
    found = fuse(plan, legs).candidates
    return dict(zip(found.keys.tolist(), found.scores.tolist(), strict=True))


def test_a_leg_alone_keeps_its_scores_and_names_them() -> None:
    for mode, each, score_type in (("dense", ONE_QUERY.lists[0], "dense"), ("keyword", ONE_QUERY.lists[1], "bm25")):
        ranking = fuse(SearchPlan("q", mode=mode), Legs((each,), {}))
        assert (ranking.candidates, ranking.score_type) == (each.candidates, score_type)


def test_each_method_names_its_score() -> None:
    for fusion, score_type in ((RankFusion(), "rrf"), (ScoreFusion(), "weighted"), (RelativeFusion(), "relative")):
        assert fuse(SearchPlan("q", fusion=fusion), ONE_QUERY).score_type == score_type


def test_relative_scores_count_vectors_from_the_last_and_keywords_from_0() -> None:
    found = scores(SearchPlan("q", fusion=RelativeFusion(0.5)), ONE_QUERY)
    assert found == pytest.approx({1: 0.5, 2: 0.25 + 0.5, 3: 0.0, 4: 0.375}, abs=1e-5)


def test_the_weakest_hit_of_a_min_max_list_counts_nothing() -> None:
    found = scores(SearchPlan("q", fusion=ScoreFusion(0.5)), ONE_QUERY)
    assert found == pytest.approx({1: 0.5, 2: 0.25 + 0.5, 3: 0.0, 4: 0.0}, abs=1e-5)


def test_z_scores_count_deviations() -> None:
    found = scores(SearchPlan("q", fusion=ScoreFusion(0.5, "z_score")), ONE_QUERY)
    dense = 0.5 * 0.05 / np.std([0.9, 0.85, 0.8])
    assert found == pytest.approx({1: 2 * dense, 2: dense + 0.5 * 2, 3: 0.0, 4: 0.0}, rel=1e-4, abs=1e-5)


def test_keywords_weigh_by_the_strength_of_their_best_hit() -> None:
    weight = automatic_keyword_weight(0.4)
    assert list_weights(SearchPlan("q", fusion=RankFusion()), ONE_QUERY) == [1.0, weight]
    assert list_weights(SearchPlan("q"), ONE_QUERY) == pytest.approx([1 / (1 + weight), weight / (1 + weight)])


def test_every_list_of_several_queries_votes_by_its_own_weight() -> None:
    strong, weak = automatic_keyword_weight(0.4), automatic_keyword_weight(0.1)
    assert list_weights(SearchPlan("q", fusion=RankFusion()), TWO_QUERIES) == [1, 1, 1, strong, weak]
    for fusion in (RelativeFusion(), ScoreFusion(), ScoreFusion(0.3, "z_score"), RelativeFusion(0.9)):
        assert sum(list_weights(SearchPlan("q", fusion=fusion), TWO_QUERIES)) == pytest.approx(1)
    assert set(scores(SearchPlan("q"), TWO_QUERIES)) == {1, 2, 3, 4, 5}


def test_fixed_weights_count_for_every_list_of_their_leg() -> None:
    fixed = RankFusion(weights=LegWeights(2, 0.5))
    assert list_weights(SearchPlan("q", fusion=fixed), TWO_QUERIES) == [2, 2, 2, 0.5, 0.5]


def test_several_queries_of_one_leg_count_alike() -> None:
    legs = Legs(TWO_QUERIES.lists[:2], {})
    plan = SearchPlan("q", mode="dense")
    assert list_weights(plan, legs) == [0.5, 0.5]
    assert scores(plan, legs) == pytest.approx({1: 0.5, 4: 0.5, 2: 0.25, 3: 0.0}, abs=1e-5)


def test_a_hybrid_search_whose_other_leg_fails_has_a_fused_score_of_what_is_left() -> None:
    ranking = fuse(SearchPlan("q"), Legs(ONE_QUERY.lists[:1], {}))
    assert (ranking.candidates.keys.tolist(), ranking.score_type) == ([1, 2, 3], "relative")
    assert ranking.candidates.scores.tolist() == pytest.approx([1.0, 0.5, 0.0], abs=1e-5)
