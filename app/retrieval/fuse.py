"""Make one ranking of the legs' lists, by the method and the weights that the plan asks for."""

from app.indexes.port import Candidates
from app.retrieval.fusion import (
    automatic_alpha,
    automatic_keyword_weight,
    reciprocal_rank_fusion,
    weighted_score_fusion,
)
from app.retrieval.keyword import KeywordHits
from app.retrieval.legs import LegList, Legs
from app.retrieval.plan import Fusion, LegWeights, RankFusion, SearchPlan, fixed_weights
from app.retrieval.ranking import Ranking

_SCORE_OF_LEG = {"dense": "dense", "keyword": "bm25"}


def fuse(plan: SearchPlan, legs: Legs) -> Ranking:
    """Return one ranking; a search of one leg and one query keeps that leg's own scores."""
    if len(legs.lists) == 1 and plan.mode != "hybrid":
        only = legs.lists[0]
        return Ranking(only.candidates, _SCORE_OF_LEG[only.leg])
    lists = [each.candidates for each in legs.lists]
    is_hybrid = len({each.leg for each in legs.lists}) > 1
    weights = [_weight(plan.fusion, each) if is_hybrid else 1.0 for each in legs.lists]
    return _fused(plan.fusion, lists, weights)


def _fused(fusion: Fusion, lists: list[Candidates], weights: list[float]) -> Ranking:
    if isinstance(fusion, RankFusion):
        return Ranking(reciprocal_rank_fusion(lists, weights, fusion.k), "rrf")
    return Ranking(weighted_score_fusion(lists, weights), "weighted")


def _weight(fusion: Fusion, each: LegList) -> float:
    fixed = fixed_weights(fusion)
    if fixed is not None:
        weights = fixed
    elif each.keyword is None:
        weights = LegWeights()
    else:
        weights = _automatic(fusion, each.keyword)
    return weights.dense if each.leg == "dense" else weights.keyword


def _automatic(fusion: Fusion, keyword: KeywordHits) -> LegWeights:
    if isinstance(fusion, RankFusion):
        return LegWeights(keyword=automatic_keyword_weight(keyword.coverage, keyword.known))
    alpha = automatic_alpha(keyword.coverage)
    return LegWeights(dense=alpha, keyword=1 - alpha)
