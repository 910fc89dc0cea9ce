"""The one list that every step after the legs takes and gives."""

from dataclasses import dataclass, replace

import numpy as np

from app.indexes.port import Candidates

RERANKED = "rerank"
"""The score type of what a reranker ordered."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Chunks in their order with the score that put them there; `score_type` names it.

    `reranker` names the reranker and its model whose scores these are, `None` where they tell no more than the order.
    """

    candidates: Candidates
    score_type: str
    reranker: str | None = None

    def key_list(self) -> list[int]:
        """Return the chunk keys, best first."""
        keys: list[int] = self.candidates.keys.tolist()
        return keys

    def picked(self, places: "np.typing.NDArray[np.integer]") -> "Ranking":
        """Return the hits of these places, in the order of the places."""
        found = self.candidates
        return replace(self, candidates=Candidates(found.keys[places], found.scores[places]))

    def first(self, limit: int) -> "Ranking":
        """Return at most so many hits, the best."""
        found = self.candidates
        return replace(self, candidates=Candidates(found.keys[:limit], found.scores[:limit]))
