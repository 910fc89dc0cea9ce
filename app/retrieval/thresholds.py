"""Leave out what is below `min_score`: by the score that is returned, or by that of one leg."""

import numpy as np
from numpy.typing import NDArray

from app.retrieval.dense import exact_cosines
from app.retrieval.legs import Legs
from app.retrieval.ranking import RERANKED, Ranking
from app.retrieval.run import SearchRun

_NONE = -np.inf
"""The score of a hit that the leg does not know."""


def above_minimum(run: SearchRun, ranking: Ranking, legs: Legs) -> Ranking:
    """Return the hits whose score reaches `min_score`; all of them and a warning where that score is not there.

    `min_score_on` names a leg; a search of one leg has that one's, any other the reranker's. A hit that the dense leg
    did not list is given its exact cosine; one that the keyword leg did not list does not reach any minimum.
    """
    plan = run.plan
    if plan.min_score is None:
        return ranking
    leg = plan.min_score_on
    if leg is None and plan.rerank is None and plan.mode != "hybrid":
        leg = plan.mode
    scores = _reranked_scores(ranking) if leg is None else _leg_scores(run, ranking, legs, leg)
    name = leg or "rerank"
    if scores is None:
        run.warn("min_score_not_applied", f"min_score is for the score of {name}, which is not there", on=name)
        return ranking
    kept = ranking.picked(np.flatnonzero(scores >= plan.min_score))
    run.trace.add("min_score", kept.candidates, least=plan.min_score, on=name)
    return kept


def _reranked_scores(ranking: Ranking) -> NDArray[np.float64] | None:
    return ranking.candidates.scores.astype(np.float64) if ranking.score_type == RERANKED else None


def _leg_scores(run: SearchRun, ranking: Ranking, legs: Legs, leg: str) -> NDArray[np.float64] | None:
    lists = [each.candidates for each in legs.lists if each.leg == leg]
    if not lists:
        return None
    found: dict[int, float] = {}
    for each in lists:
        for key, score in zip(each.keys.tolist(), each.scores.tolist(), strict=True):
            found[key] = max(score, found.get(key, _NONE))
    keys = ranking.key_list()
    if leg == "dense":
        found |= _cosines(run, np.array([key for key in keys if key not in found], np.int64))
    return np.array([found.get(key, _NONE) for key in keys], np.float64)


def _cosines(run: SearchRun, keys: NDArray[np.int64]) -> dict[int, float]:
    """Return the exact cosine of each chunk with the nearest of the query's vectors."""
    found: dict[int, float] = {}
    if run.query_vectors is None or not len(keys):
        return found
    for vector in run.query_vectors:
        for key, score in exact_cosines(run, vector, keys).items():
            found[key] = max(score, found.get(key, _NONE))
    return found
