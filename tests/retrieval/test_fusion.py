"""Fusion keeps its laws: order of legs is irrelevant, every key stays, ties fall by key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.indexes.port import Candidates
from app.retrieval.fusion import (
    automatic_alpha,
    automatic_keyword_weight,
    ranked,
    reciprocal_rank_fusion,
    weighted_score_fusion,
)


def leg(*keys: int, scores: list[float] | None = None) -> Candidates:
    values = scores or [float(len(keys) - place) for place in range(len(keys))]
    return Candidates(np.array(keys, np.int64), np.array(values, np.float32))


@st.composite
def legs(draw: st.DrawFn) -> list[Candidates]:
    made = []
    for _ in range(draw(st.integers(1, 4))):
        keys = draw(st.lists(st.integers(1, 30), unique=True, max_size=20))
        scores = draw(st.lists(st.floats(-5, 5, width=32), min_size=len(keys), max_size=len(keys)))
        made.append(leg(*keys, scores=sorted(scores, reverse=True)))
    return made


weights = st.lists(st.floats(0, 10), min_size=4, max_size=4)


def same(one: Candidates, two: Candidates) -> bool:
    return one.keys.tolist() == two.keys.tolist() and one.scores.tolist() == two.scores.tolist()


@given(legs(), weights, st.floats(0, 100), st.randoms(use_true_random=False))
def test_the_order_of_the_legs_changes_nothing(made, weights, k, random) -> None:
    pairs = list(zip(made, weights, strict=False))
    shuffled = random.sample(pairs, len(pairs))
    for fuse in (lambda *a: reciprocal_rank_fusion(*a, k), weighted_score_fusion):
        one = fuse([leg for leg, _ in pairs], [weight for _, weight in pairs])
        two = fuse([leg for leg, _ in shuffled], [weight for _, weight in shuffled])
        assert same(one, two)


@given(legs(), weights)
def test_every_key_of_every_leg_comes_out_once_by_falling_score(made, weights) -> None:
    fused = reciprocal_rank_fusion(made, weights[: len(made)], 10)
    assert sorted(fused.keys.tolist()) == sorted({key for leg in made for key in leg.keys.tolist()})
    pairs = list(zip(-fused.scores, fused.keys, strict=True))
    assert pairs == sorted(pairs)


@given(legs(), st.floats(0, 100))
def test_one_leg_alone_keeps_its_order(made, k) -> None:
    assert reciprocal_rank_fusion(made[:1], [1.0], k).keys.tolist() == made[0].keys.tolist()


def test_a_score_is_the_sum_of_weight_by_k_and_rank() -> None:
    fused = reciprocal_rank_fusion([leg(1, 2), leg(2, 3)], [1.0, 0.5], 60)
    expected = {2: 1 / 62 + 0.5 / 61, 1: 1 / 61, 3: 0.5 / 62}
    assert dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert fused.keys.tolist() == [2, 1, 3]


def test_min_max_scores_run_from_the_last_to_the_first_hit_of_a_leg() -> None:
    fused = weighted_score_fusion([leg(1, 2, 3, scores=[0.9, 0.8, 0.7]), leg(3, 4, scores=[12.0, 2.0])], [0.75, 0.25])
    assert dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(
        {1: 0.75, 2: 0.375, 3: 0.25, 4: 0.0}, abs=1e-6
    )


def test_a_leg_whose_hits_all_score_the_same_gives_each_its_full_weight() -> None:
    assert weighted_score_fusion([leg(5, 7, scores=[3.0, 3.0])], [0.5]).scores.tolist() == [0.5, 0.5]


def test_an_empty_leg_leaves_the_other_alone() -> None:
    assert reciprocal_rank_fusion([leg(), leg(4, 2)], [1.0, 1.0], 10).keys.tolist() == [4, 2]
    assert weighted_score_fusion([leg(), leg()], [1.0, 1.0]).keys.tolist() == []


def test_ties_fall_by_the_smaller_key() -> None:
    assert ranked(np.array([9, 3, 5]), np.array([1.0, 1.0, 2.0])).keys.tolist() == [5, 3, 9]


def test_keywords_that_know_nothing_of_the_query_hardly_vote() -> None:
    assert automatic_keyword_weight(coverage=0.0, known=0.0) == 0
    assert automatic_keyword_weight(coverage=0.2, known=0.5) == pytest.approx(0.25)
    assert automatic_keyword_weight(coverage=0.1, known=0.9) == pytest.approx(0.9**4)
    assert automatic_keyword_weight(coverage=0.7, known=0.2) == 1
    assert automatic_alpha(coverage=0.0) == 1
    assert automatic_alpha(coverage=1.0) == 0.5
