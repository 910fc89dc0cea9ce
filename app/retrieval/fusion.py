"""Fuse the rankings of several legs into one. Pure functions: the order of the legs never changes the result."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.indexes.port import Candidates
from app.stores.port import Keys

FULL_STRENGTH = 0.5
"""Strength of a keyword leg's best hit from which its list counts as much as a dense one."""

STRENGTH_EXPONENT = 2
"""How fast a weaker list loses its weight; the page 0019 has the measures of both."""


def ranked(keys: Keys, scores: NDArray[np.floating], limit: int | None = None) -> Candidates:
    """Return keys by falling score, ties by the smaller key, at most `limit` of them."""
    rounded = scores.astype(np.float32)
    order = np.lexsort((keys, -rounded))[:limit]
    return Candidates(keys=keys[order], scores=rounded[order])


def reciprocal_rank_fusion(legs: Sequence[Candidates], weights: Sequence[float], k: float) -> Candidates:
    """Score each key by the sum over legs of `weight / (k + rank)`, ranks from 1.

    Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
    methods", with a weight for each leg.
    """
    return _summed(legs, [weight / (k + _ranks(leg)) for leg, weight in zip(legs, weights, strict=True)])


def min_max_fusion(legs: Sequence[Candidates], weights: Sequence[float]) -> Candidates:
    """Score each key by the sum over legs of `weight * (score - lowest) / (best - lowest)`, 0 where a leg lacks it.

    This is what Weaviate calls relative score fusion.
    """
    return relative_score_fusion(legs, weights, [None] * len(legs))


def relative_score_fusion(
    legs: Sequence[Candidates], weights: Sequence[float], floors: Sequence[float | None]
) -> Candidates:
    """Score each key by the sum over legs of `weight * (score - floor) / (best - floor)`, 0 where a leg lacks it.

    A leg's floor is the score of what it does not find, where that is known: 0 of BM25, so that the last hit still
    counts for the terms that it holds. `None` is the leg's lowest score, above which nothing else can be.
    """
    parts = [weight * _above(leg.scores, floor) for leg, weight, floor in zip(legs, weights, floors, strict=True)]
    return _summed(legs, parts)


def z_score_fusion(legs: Sequence[Candidates], weights: Sequence[float]) -> Candidates:
    """Score each key by the sum over legs of `weight * (z - lowest z)`, 0 where a leg lacks it.

    The order is that of summed z-scores in which a key that a leg lacks counts as its last hit.
    """
    return _summed(legs, [weight * _deviations(leg.scores) for leg, weight in zip(legs, weights, strict=True)])


def automatic_keyword_weight(strength: float) -> float:
    """Return the weight of a keyword list beside a dense list of weight 1, for the strength of its best hit.

    A leg that understands little of the query, as across languages, hardly votes.
    """
    return float(min(1.0, strength / FULL_STRENGTH) ** STRENGTH_EXPONENT)


def _ranks(leg: Candidates) -> NDArray[np.float64]:
    return np.arange(1, len(leg.keys) + 1, dtype=np.float64)


def _above(scores: NDArray[np.float32], floor: float | None) -> NDArray[np.float64]:
    if not len(scores):
        return np.zeros(0)
    values = scores.astype(np.float64)
    low, high = values.min() if floor is None else floor, values.max()
    return (values - low) / (high - low) if high > low else np.ones(len(values))


def _deviations(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    if not len(scores):
        return np.zeros(0)
    values = scores.astype(np.float64)
    deviation = values.std()
    return (values - values.min()) / deviation if deviation > 0 else np.ones(len(values))


def _summed(legs: Sequence[Candidates], contributions: Sequence[NDArray[np.float64]]) -> Candidates:
    keys, places = np.unique(np.concatenate([leg.keys for leg in legs]), return_inverse=True)
    table = np.zeros((len(legs), len(keys)))
    begin = 0
    for row, (leg, contribution) in enumerate(zip(legs, contributions, strict=True)):
        table[row, places[begin : begin + len(leg.keys)]] = contribution
        begin += len(leg.keys)
    return ranked(keys, table.sum(axis=0))
