"""Score by BM25 over the texts themselves, with the term weights of the whole collection; needs no model."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from app.inference.rerankers.vocabulary import Vocabulary
from app.inference.token_counter import estimate_tokens

_K1 = 1.2
_B = 0.75


class LexicalReranker:
    """BM25 (Robertson 1994) of the query's terms, as a share of what a text that repeats them all without end gets.

    The share makes scores of different queries comparable: a term that the collection lacks counts with the largest
    weight, so texts beside the subject stay near 0. The average length is that of the texts given.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def window_tokens(self) -> int | None:
        """Return `None`: a text of any length is scored whole."""
        return None

    def count_tokens(self, text: str) -> int:
        """Return an estimate; nothing here depends on it."""
        return estimate_tokens(text)

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NDArray[np.float32]:
        """Return a score from 0 to 1 for each text, of the query that the vocabulary is of."""
        del query, timeout_seconds
        weights = self._vocabulary.weights
        most = (_K1 + 1) * sum(weights.values())
        if not texts or not most:
            return np.zeros(len(texts), np.float32)
        # Texts without any term would divide by an average length of 0.
        ranking = _WeightedBM25([self._vocabulary.terms(text) or [""] for text in texts], weights)
        shares: NDArray[np.float32] = (ranking.get_scores(list(weights)) / most).astype(np.float32)
        return shares

    def close(self) -> None:
        """Do nothing: it holds no resource."""


class _WeightedBM25(BM25Okapi):  # type: ignore[misc]  # the package has no types
    def __init__(self, texts: Sequence[Sequence[str]], weights: Mapping[str, float]) -> None:
        self._weights = weights
        super().__init__(texts, k1=_K1, b=_B)

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Take the collection's weights in place of those of these few texts."""
        del nd
        self.idf = self._weights
