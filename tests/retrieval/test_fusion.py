"""Fusion keeps its laws: order of legs is irrelevant, every key stays, ties fall by key, scales do not count."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.indexes.port import Candidates
from app.retrieval.fusion import (
    automatic_keyword_weight,
    min_max_fusion,
    ranked,
    reciprocal_rank_fusion,
    relative_score_fusion,
    z_score_fusion,
)

Fuse = Callable[[Sequence[Candidates], Sequence[float]], Candidates]

BY_RANK: Fuse = lambda legs, weights: reciprocal_rank_fusion(legs, weights, 10)  # noqa: E731
FROM_ZERO: Fuse = lambda legs, weights: relative_score_fusion(legs, weights, [0.0] * len(legs))  # noqa: E731

METHODS: dict[str, Fuse] = {
    "rrf": BY_RANK,
    "min_max": min_max_fusion,
    "z_score": z_score_fusion,
    "relative": FROM_ZERO,
}


def leg(*keys: int, scores: Sequence[float] | None = None) -> Candidates:
    values = scores or [float(len(keys) - place) for place in range(len(keys))]
    return ranked(np.array(keys, np.int64), np.array(values, np.float32))


@st.composite
def legs(draw: st.DrawFn) -> list[Candidates]:
    """Make lists of whole scores above 0, which no change of scale or sum of a few rounds together."""
    made = []
    for _ in range(draw(st.integers(1, 5))):
        keys = draw(st.lists(st.integers(1, 30), unique=True, max_size=20))
        made.append(leg(*keys, scores=draw(st.lists(st.integers(1, 50), min_size=len(keys), max_size=len(keys)))))
    return made


weights = st.lists(st.floats(0, 10), min_size=5, max_size=5)
methods = st.sampled_from(sorted(METHODS)).map(METHODS.__getitem__)


def same(one: Candidates, two: Candidates) -> bool:
    return one.keys.tolist() == two.keys.tolist() and one.scores.tolist() == two.scores.tolist()


@given(methods, legs(), weights, st.randoms(use_true_random=False))
def test_the_order_of_the_legs_changes_nothing(fuse, made, weights, random) -> None:
    pairs = list(zip(made, weights, strict=False))
    shuffled = random.sample(pairs, len(pairs))
    one = fuse([leg for leg, _ in pairs], [weight for _, weight in pairs])
    two = fuse([leg for leg, _ in shuffled], [weight for _, weight in shuffled])
    assert same(one, two)


@given(methods, legs(), weights)
def test_every_key_of_every_leg_comes_out_once_by_falling_score_and_then_by_key(fuse, made, weights) -> None:
    fused = fuse(made, weights[: len(made)])
    assert sorted(fused.keys.tolist()) == sorted({key for leg in made for key in leg.keys.tolist()})
    pairs = list(zip(-fused.scores, fused.keys, strict=True))
    assert pairs == sorted(pairs)


@given(methods, legs(), st.floats(0.1, 10))
def test_one_leg_alone_keeps_its_order(fuse, made, weight) -> None:
    assert fuse(made[:1], [weight]).keys.tolist() == made[0].keys.tolist()


@given(methods, legs(), weights, st.integers(-4, 4))
def test_the_scale_of_a_legs_scores_does_not_count(fuse, made, weights, power) -> None:
    scaled = [Candidates(made[0].keys, made[0].scores * np.float32(2.0**power)), *made[1:]]
    assert same(fuse(made, weights[: len(made)]), fuse(scaled, weights[: len(made)]))


@given(st.sampled_from((min_max_fusion, z_score_fusion)), legs(), weights, st.integers(-100, 100))
def test_what_is_added_to_all_of_a_legs_scores_does_not_count(fuse, made, weights, added) -> None:
    moved = [Candidates(made[0].keys, made[0].scores + np.float32(added)), *made[1:]]
    one, two = fuse(made, weights[: len(made)]), fuse(moved, weights[: len(made)])
    by_key = [dict(zip(each.keys.tolist(), each.scores.tolist(), strict=True)) for each in (one, two)]
    assert by_key[1] == pytest.approx(by_key[0], rel=1e-5, abs=1e-5)


@given(legs(), st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_shares_with_weights_that_add_up_to_1_lie_between_0_and_1(made, weights) -> None:
    shares = np.array(weights[: len(made)]) / sum(weights[: len(made)])
    for fuse in (min_max_fusion, FROM_ZERO):
        scores = fuse(made, shares.tolist()).scores
        assert (scores >= 0).all()
        assert (scores <= 1.00001).all()


@given(methods, legs(), weights)
def test_a_leg_without_weight_changes_no_score(fuse, made, weights) -> None:
    counting, silent = made[:-1] or made, made[-1:]
    one = fuse(counting, weights[: len(counting)])
    two = fuse([*counting, *silent], [*weights[: len(counting)], 0.0])
    with_it = dict(zip(two.keys.tolist(), two.scores.tolist(), strict=True))
    assert {key: with_it[key] for key in one.keys.tolist()} == dict(
        zip(one.keys.tolist(), one.scores.tolist(), strict=True)
    )


def test_a_rank_score_is_the_sum_of_weight_by_k_and_rank() -> None:
    fused = reciprocal_rank_fusion([leg(1, 2), leg(2, 3)], [1.0, 0.5], 60)
    expected = {2: 1 / 62 + 0.5 / 61, 1: 1 / 61, 3: 0.5 / 62}
    assert dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert fused.keys.tolist() == [2, 1, 3]


def test_min_max_scores_run_from_the_last_to_the_first_hit_of_a_leg() -> None:
    fused = min_max_fusion([leg(1, 2, 3, scores=[0.9, 0.8, 0.7]), leg(3, 4, scores=[12.0, 2.0])], [0.75, 0.25])
    assert dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(
        {1: 0.75, 2: 0.375, 3: 0.25, 4: 0.0}, abs=1e-6
    )


def test_relative_scores_are_shares_of_the_best_above_a_known_floor() -> None:
    lists = [leg(1, 2, 3, scores=[0.9, 0.8, 0.7]), leg(3, 4, scores=[12.0, 3.0])]
    fused = relative_score_fusion(lists, [0.75, 0.25], [None, 0.0])
    assert dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(
        {1: 0.75, 2: 0.375, 3: 0.25, 4: 0.0625}, abs=1e-6
    )


def test_z_scores_order_as_if_a_key_that_a_leg_lacks_were_its_last_hit() -> None:
    lists = [leg(1, 2, 3, scores=[9.0, 5.0, 4.0]), leg(4, 3, 5, scores=[30.0, 12.0, 11.0])]
    every = {key: 0.0 for each in lists for key in each.keys.tolist()}
    for each, weight in zip(lists, (0.6, 0.4), strict=True):
        z = (each.scores - each.scores.mean()) / each.scores.std()
        known = dict(zip(each.keys.tolist(), z.tolist(), strict=True))
        every = {key: total + weight * known.get(key, min(known.values())) for key, total in every.items()}
    assert z_score_fusion(lists, [0.6, 0.4]).keys.tolist() == sorted(every, key=lambda key: (-every[key], key))


def test_a_leg_whose_hits_all_score_the_same_gives_each_its_full_weight() -> None:
    for fuse in (min_max_fusion, z_score_fusion, FROM_ZERO):
        assert fuse([leg(5, 7, scores=[3.0, 3.0])], [0.5]).scores.tolist() == [0.5, 0.5]


def test_an_empty_leg_leaves_the_other_alone() -> None:
    for fuse in METHODS.values():
        assert fuse([leg(), leg(4, 2)], [1.0, 1.0]).keys.tolist() == [4, 2]
        assert fuse([leg(), leg()], [1.0, 1.0]).keys.tolist() == []


def test_ties_fall_by_the_smaller_key() -> None:
    assert ranked(np.array([9, 3, 5]), np.array([1.0, 1.0, 2.0])).keys.tolist() == [5, 3, 9]


def test_keywords_that_hold_little_of_the_query_hardly_vote() -> None:
    assert automatic_keyword_weight(0.0) == 0
    assert automatic_keyword_weight(0.1) == pytest.approx(0.04)
    assert automatic_keyword_weight(0.5) == automatic_keyword_weight(5.0) == 1
