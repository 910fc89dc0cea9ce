"""Score by the meaning of single tokens: each of the query looks for the one of the text that is most like it."""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from app.inference.port import TokenEmbedder
from app.inference.rerankers.deadline import Deadline, each_in_time
from app.inference.rerankers.lexical import LexicalReranker
from app.inference.rerankers.vocabulary import Vocabulary

LEXICAL_SHARE = 0.1
"""What the words themselves count beside the token vectors' 1."""


class LateInteractionReranker:
    """MaxSim (ColBERT, Khattab 2020) over the embedded model's token vectors, and a little of the words themselves.

    A token counts by the mean weight of the terms that it is a piece of, so that those of stop words do not count.
    Measured in decision 0021.
    """

    def __init__(self, embedder: TokenEmbedder, vocabulary: Vocabulary, pool: Executor) -> None:
        self._embedder = embedder
        self._vocabulary = vocabulary
        self._pool = pool
        self._lexical = LexicalReranker(vocabulary)

    @property
    def window_tokens(self) -> int | None:
        """Return the embedded model's window."""
        return self._embedder.window_tokens

    def count_tokens(self, text: str) -> int:
        """Return the embedded model's own count."""
        return self._embedder.count_tokens(text)

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NDArray[np.float32]:
        """Return a score below 1 for each text; a text of other matters gets 0.7 or so, not 0."""
        deadline = Deadline(timeout_seconds)
        words = self._lexical.scores(query, texts, timeout_seconds=timeout_seconds)
        asked = self._embedder.embed_query_tokens(query)
        weights = self._weights(asked.pieces)

        def nearest(text: str) -> float:
            found = self._embedder.embed_passage_tokens(text)
            likeness = (asked.vectors @ found.vectors.T).max(axis=1, initial=-1.0)
            return float(likeness @ weights)

        meaning = np.array(each_in_time(self._pool, nearest, texts, deadline), np.float32)
        scores: NDArray[np.float32] = ((meaning + LEXICAL_SHARE * words) / (1 + LEXICAL_SHARE)).astype(np.float32)
        return scores

    def close(self) -> None:
        """Do nothing: model and threads belong to who gave them."""

    def _weights(self, pieces: Sequence[str]) -> NDArray[np.float32]:
        """Return what each token counts, 1 in all; equally much where no term of the query says anything."""
        terms = [
            (start, end, self._vocabulary.weights[term])
            for term, start, end in self._vocabulary.located_terms("".join(pieces))
            if term in self._vocabulary.weights
        ]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64).tolist()
        weights = np.zeros(len(pieces))
        for place, (piece, last) in enumerate(zip(pieces, ends, strict=True)):
            inside = [weight for start, end, weight in terms if start < last and end > last - len(piece)]
            weights[place] = sum(inside) / len(inside) if inside else 0
        total = weights.sum()
        shares = weights / total if total else np.full(len(pieces), 1 / max(1, len(pieces)))
        return shares.astype(np.float32)
