"""Make one ranking of the legs' lists, by the method and the weights that the plan asks for."""

from collections.abc import Sequence

from app.indexes.port import Candidates
from app.retrieval.fusion import (
    automatic_keyword_weight,
    min_max_fusion,
    reciprocal_rank_fusion,
    relative_score_fusion,
    z_score_fusion,
)
from app.retrieval.legs import LegList, Legs
from app.retrieval.plan import Fusion, LegWeights, RankFusion, RelativeFusion, SearchPlan, fixed_weights
from app.retrieval.ranking import Ranking

_SCORE_OF_LEG = {"dense": "dense", "keyword": "bm25"}

_FLOOR_OF_LEG = {"keyword": 0.0}
"""Scores of what a leg does not find, where they are known."""


def fuse(plan: SearchPlan, legs: Legs) -> Ranking:
    """Return one ranking; a search of one leg and one query keeps that leg's own scores."""
    if len(legs.lists) == 1 and plan.mode != "hybrid":
        only = legs.lists[0]
        return Ranking(only.candidates, _SCORE_OF_LEG[only.leg])
    return _fused(plan.fusion, legs.lists, list_weights(plan, legs))


def list_weights(plan: SearchPlan, legs: Legs) -> list[float]:
    """Return how much each list counts; the weights of fused scores add up to 1, so that no score is above 1."""
    is_hybrid = len({each.leg for each in legs.lists}) > 1
    weights = [_weight(plan.fusion, each) if is_hybrid else 1.0 for each in legs.lists]
    total = sum(weights)
    return weights if isinstance(plan.fusion, RankFusion) or not total else [weight / total for weight in weights]


def _fused(fusion: Fusion, lists: Sequence[LegList], weights: Sequence[float]) -> Ranking:
    found: list[Candidates] = [each.candidates for each in lists]
    if isinstance(fusion, RankFusion):
        return Ranking(reciprocal_rank_fusion(found, weights, fusion.k), "rrf")
    if isinstance(fusion, RelativeFusion):
        floors = [_FLOOR_OF_LEG.get(each.leg) for each in lists]
        return Ranking(relative_score_fusion(found, weights, floors), "relative")
    by_score = z_score_fusion if fusion.normalisation == "z_score" else min_max_fusion
    return Ranking(by_score(found, weights), "weighted")


def _weight(fusion: Fusion, each: LegList) -> float:
    weights = fixed_weights(fusion)
    if weights is None:
        weights = LegWeights() if each.keyword is None else _automatic(each.keyword.strength)
    return weights.dense if each.leg == "dense" else weights.keyword


def _automatic(strength: float) -> LegWeights:
    return LegWeights(dense=1.0, keyword=automatic_keyword_weight(strength))
