"""Fuse the rankings of several legs into one. Pure functions: the order of the legs never changes the result."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.indexes.port import Candidates
from app.stores.port import Keys


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


def weighted_score_fusion(legs: Sequence[Candidates], weights: Sequence[float]) -> Candidates:
    """Score each key by the sum over legs of `weight * (score - min) / (max - min)`, 0 where a leg lacks it."""
    return _summed(legs, [weight * _min_max(leg.scores) for leg, weight in zip(legs, weights, strict=True)])


def automatic_keyword_weight(coverage: float, known: float) -> float:
    """Return the keyword leg's weight beside a dense leg of weight 1 in `reciprocal_rank_fusion`.

    `coverage` is the share of the query that the best keyword hit contains and `known` the share that the collection
    contains, both from 0 to 1. A leg that understands little of the query, as across languages, hardly votes.
    """
    return max(min(1.0, (coverage / 0.4) ** 2), known**4)


def automatic_alpha(coverage: float) -> float:
    """Return the dense leg's weight in `weighted_score_fusion` for a keyword leg that counts `coverage` times it."""
    return 1 / (1 + coverage)


def _ranks(leg: Candidates) -> NDArray[np.float64]:
    return np.arange(1, len(leg.keys) + 1, dtype=np.float64)


def _min_max(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    if not len(scores):
        return np.zeros(0)
    values = scores.astype(np.float64)
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.ones(len(values))


def _summed(legs: Sequence[Candidates], contributions: Sequence[NDArray[np.float64]]) -> Candidates:
    keys, places = np.unique(np.concatenate([leg.keys for leg in legs]), return_inverse=True)
    table = np.zeros((len(legs), len(keys)))
    begin = 0
    for row, (leg, contribution) in enumerate(zip(legs, contributions, strict=True)):
        table[row, places[begin : begin + len(leg.keys)]] = contribution
        begin += len(leg.keys)
    return ranked(keys, table.sum(axis=0))
