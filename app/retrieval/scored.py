"""A ranking with every score of each hit: what passages tell, and what a cursor carries to the next page."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import LegScore
from app.retrieval.legs import Legs
from app.retrieval.ranking import RERANKED, Ranking

ONE_LEG = ("dense", "bm25")
"""Score types of a search that fused nothing."""

ABSENT = 0
"""The rank of a hit in a leg that did not find it."""


@dataclass(frozen=True, slots=True)
class LegColumn:
    """What one leg says of each hit: float32 scores, and ranks from 1 with 0 where it did not find the hit."""

    scores: NDArray[np.float32]
    ranks: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Scored:
    """The ranking, and columns of its length.

    `fused` holds the scores before a reranker's, NaN for a hit that no fusion scored; `None` where none reordered what
    was fused, and where nothing was.
    """

    ranking: Ranking
    fused: NDArray[np.float32] | None
    legs: Mapping[str, LegColumn]

    def leg_scores(self, place: int) -> dict[str, LegScore]:
        """Return what each leg that found the hit says of it."""
        return {
            leg: LegScore(float(column.scores[place]), int(column.ranks[place]))
            for leg, column in self.legs.items()
            if column.ranks[place] != ABSENT
        }

    def fused_score(self, place: int) -> float | None:
        """Return the hit's score before any step after the fusion."""
        if self.fused is None:
            is_fused = self.ranking.score_type not in (*ONE_LEG, RERANKED)
            return float(self.ranking.candidates.scores[place]) if is_fused else None
        score = float(self.fused[place])
        return None if np.isnan(score) else score

    def rerank_score(self, place: int) -> float | None:
        """Return the reranker's score where one put the hits in their order."""
        return float(self.ranking.candidates.scores[place]) if self.ranking.score_type == RERANKED else None


def with_scores(ranking: Ranking, fused: Ranking, legs: Legs) -> Scored:
    """Return the ranking with what was said of its hits on the way; `fused` is the ranking before it was reordered."""
    keys = ranking.candidates.keys
    fused_scores: NDArray[np.float32] | None = None
    if ranking.score_type == RERANKED and fused.score_type not in ONE_LEG:
        fused_scores = np.full(len(keys), np.nan, np.float32)
        places, there = _places(fused.candidates.keys, keys)
        fused_scores[there] = fused.candidates.scores[places[there]]
    columns: dict[str, LegColumn] = {}
    for each in legs.lists:
        empty = LegColumn(np.zeros(len(keys), np.float32), np.zeros(len(keys), np.uint16))
        column = columns.setdefault(each.leg, empty)
        places, there = _places(each.candidates.keys, keys)
        ranks = np.where(there, places + 1, np.iinfo(np.uint16).max)
        # Of several lists of one leg the one that ranks the hit best counts.
        better = there & ((column.ranks == ABSENT) | (ranks < column.ranks))
        column.scores[better] = each.candidates.scores[places[better]]
        column.ranks[better] = ranks[better]
    return Scored(ranking, fused_scores, columns)


def _places(among: NDArray[np.int64], keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where each key stands in `among`, and whether it does."""
    if not len(among):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    order = np.argsort(among)
    found = np.minimum(np.searchsorted(among, keys, sorter=order), len(among) - 1)
    places = order[found]
    return places, among[places] == keys
