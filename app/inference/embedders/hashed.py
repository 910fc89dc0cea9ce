"""Embed without a model: words and CJK bigrams hashed into a fixed number of dimensions (Weinberger 2009)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.inference.port import FINGERPRINT_TEXT, TokenCounterSpec

MODEL_NAME = "hashed"
DIMENSIONS = 384
WINDOW_TOKENS = 1_000_000

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003134f"
_WORD_OR_CJK = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")


class HashedEmbedder:
    """Give texts that share words a high cosine; deterministic everywhere, and blind to meaning."""

    @cached_property
    def space(self) -> EmbeddingSpace:
        """Return the space, which never changes."""
        fingerprint = self.embed_passages([FINGERPRINT_TEXT])[0]
        return EmbeddingSpace("hashed", MODEL_NAME, DIMENSIONS, tuple(fingerprint.tolist()))

    @property
    def window_tokens(self) -> int:
        """Return a length that no chunk reaches."""
        return WINDOW_TOKENS

    @property
    def token_counter(self) -> TokenCounterSpec:
        """Return the estimate, since there is no tokenizer."""
        return TokenCounterSpec("estimate")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed as passages are embedded."""
        return self.embed_passages(texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the hashed features of each text; one without any is the same vector as any other such."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float64)
        for vector, text in zip(vectors, texts, strict=True):
            for feature, count in Counter(_features(text)).items():
                place, sign = _place(feature)
                vector[place] += sign * (1 + np.log(count))
            if not vector.any():
                vector[0] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)

    def load(self) -> None:
        """Do nothing: there is no model."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _features(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    for run in _WORD_OR_CJK.findall(folded):
        yield run
        if re.match(rf"[{_CJK}]", run):
            yield from (run[at : at + 2] for at in range(len(run) - 1))
            yield from run


def _place(feature: str) -> tuple[int, int]:
    digest = blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return number % DIMENSIONS, 1 if number >> 63 else -1
