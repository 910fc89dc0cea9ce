"""Show less of the same: leave near-duplicates out, then order by maximal marginal relevance.

Carbonell and Goldstein 1998, "The use of MMR, diversity-based reranking for reordering documents and producing
summaries".
"""

import numpy as np
from numpy.typing import NDArray

from app.retrieval.plan import DiversityOptions
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun
from app.retrieval.trace import MOST_HITS


def diversify(run: SearchRun, ranking: Ranking) -> Ranking:
    """Return the ranking with less of the same, as `plan.diversity` asks; its scores stay those of the hits.

    A hit that is deleted meanwhile is left out.
    """
    options = run.plan.diversity
    if options is None or not len(ranking.candidates.keys):
        return ranking
    with run.timer.stage("diversify"):
        by_key = run.store.vectors_of(ranking.key_list())
        there = np.flatnonzero([key in by_key for key in ranking.key_list()])
        ranking = ranking.picked(there)
        vectors = np.array([by_key[key] for key in ranking.key_list()], np.float32)
        cosines = vectors @ vectors.T
        kept = np.arange(len(there))
        if options.near_duplicates is not None:
            kept = _without_near_duplicates(cosines, options.near_duplicates)
        places = _by_marginal_relevance(ranking.candidates.scores, cosines, kept, options)
    result = ranking.picked(places)
    if run.trace.wanted and len(places):
        dropped = ranking.picked(np.setdiff1d(np.arange(len(there)), kept))
        run.trace.add("near_duplicates", dropped.candidates, limit=options.near_duplicates)
        decisions = _decisions(ranking.candidates.scores, cosines, kept, places)
        run.trace.add("diversify", result.candidates, relevance_weight=options.relevance, decisions=decisions)
    return result


def _without_near_duplicates(cosines: NDArray[np.float32], limit: float) -> NDArray[np.int64]:
    """Return the places of hits that are nearer than `limit` to none that is kept before them."""
    kept: list[int] = []
    for place, row in enumerate(cosines):
        # Rounding must not keep a hit whose text is the same.
        if not kept or row[kept].max() < limit - 1e-5:
            kept.append(place)
    return np.array(kept, np.int64)


def _by_marginal_relevance(
    scores: NDArray[np.float32], cosines: NDArray[np.float32], kept: NDArray[np.int64], options: DiversityOptions
) -> NDArray[np.int64]:
    """Return the kept places, each next one the best mix of its relevance and its distance to those before.

    Scores and cosines count by their place between the least and the greatest among the hits: fused scores are small,
    and cosines of a model may all be near each other.
    """
    if options.relevance == 1 or len(kept) < 2:
        return kept
    relevance = options.relevance * _unit(scores[kept])
    likeness = (1 - options.relevance) * _unit(cosines[np.ix_(kept, kept)])
    nearest = np.zeros(len(kept))
    waiting = np.ones(len(kept), bool)
    order: list[int] = []
    for _ in kept:
        worth = np.where(waiting, relevance - nearest, -np.inf)
        best = int(worth.argmax())
        order.append(best)
        waiting[best] = False
        nearest = likeness[best] if len(order) == 1 else np.maximum(nearest, likeness[best])
    return kept[order]


def _decisions(
    scores: NDArray[np.float32], cosines: NDArray[np.float32], kept: NDArray[np.int64], places: NDArray[np.int64]
) -> list[dict[str, float]]:
    """Return each chosen hit's relevance and its nearness to the nearest of those before it, both from 0 to 1.

    A hit was chosen for the greatest `relevance_weight * relevance - (1 - relevance_weight) * nearness`.
    """
    chosen = np.searchsorted(kept, places)
    relevance = _unit(scores[kept])[chosen]
    likeness = _unit(cosines[np.ix_(kept, kept)])[np.ix_(chosen, chosen)]
    nearness = np.tril(likeness, -1).max(axis=1, initial=0.0)
    told = zip(relevance[:MOST_HITS].tolist(), nearness[:MOST_HITS].tolist(), strict=True)
    return [{"relevance": round(its, 4), "nearness": round(near, 4)} for its, near in told]


def _unit(values: NDArray[np.float32]) -> NDArray[np.float64]:
    low, high = float(values.min()), float(values.max())
    return (values.astype(np.float64) - low) / (high - low) if high > low else np.ones(values.shape)
