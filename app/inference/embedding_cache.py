"""Keep the vectors of recent texts in memory, so that an equal text is embedded once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.errors import FootnoteError
from app.inference.port import Embedder, TokenCounterSpec, TokenEmbedder
from app.processors import processors
from app.telemetry import counters

_Key: TypeAlias = tuple[Literal["query", "passage"], bytes]

# What an entry takes besides its numbers: key, digest, array object and links.
_ENTRY_OVERHEAD_BYTES = 400


def token_embedder(embedder: Embedder | None) -> TokenEmbedder | None:
    """Return what shows the embedder's tokens, which are not cached; `None` for one that shows none."""
    shown: object = embedder.uncached if isinstance(embedder, CachedEmbedder) else embedder
    return shown if isinstance(shown, TokenEmbedder) else None


class CachedEmbedder:
    """An embedder that asks another one only for texts that it has not seen lately; least recent are dropped first.

    Vectors lie side by side: each in memory of its own, among what documents needed for a moment, would keep the pages
    around it. Counts `embedding_texts` and `embedding_calls` (what went to the other) and `embedding_cache_hits`.
    """

    def __init__(self, embedder: Embedder, max_bytes: int) -> None:
        self._embedder = embedder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._places: OrderedDict[_Key, int] = OrderedDict()
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)

    @property
    def uncached(self) -> Embedder:
        """Return the other, for what is not cached."""
        return self._embedder

    @property
    def space(self) -> EmbeddingSpace:
        """Return the other's space."""
        return self._embedder.space

    @property
    def window_tokens(self) -> int:
        """Return the other's window."""
        return self._embedder.window_tokens

    @property
    def token_counter(self) -> TokenCounterSpec:
        """Return the other's token counter."""
        return self._embedder.token_counter

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the other's vectors, remembered ones first."""
        return self._embed("query", self._embedder.embed_queries, texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the other's vectors, remembered ones first."""
        return self._embed("passage", self._embedder.embed_passages, texts)

    def load(self) -> None:
        """Load the other."""
        self._embedder.load()

    def close(self) -> None:
        """Close the other and forget everything."""
        self._embedder.close()
        with self._lock:
            self._places.clear()
            self._vectors = np.empty((0, 0), np.float32)

    def _embed(
        self,
        kind: Literal["query", "passage"],
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
        texts: Sequence[str],
    ) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.space.dimensions), np.float32)
        keys: list[_Key] = [(kind, sha256(text.encode("utf-8", "surrogatepass")).digest()) for text in texts]
        found = self._recall(keys)
        missing: dict[_Key, int] = {}
        for place, key in enumerate(keys):
            if key not in found:
                missing.setdefault(key, place)
        counters.add("embedding_cache_hits", len(texts) - len(missing))
        if missing:
            places = list(missing.values())
            with processors.lent():
                fresh = dict(zip(missing, _embed_some(embed, texts, places), strict=True))
            self._remember(fresh)
            found |= fresh
        return np.stack([found[key] for key in keys])

    def _recall(self, keys: Sequence[_Key]) -> dict[_Key, NDArray[np.float32]]:
        found = {}
        with self._lock:
            for key in keys:
                place = self._places.get(key)
                if place is not None:
                    self._places.move_to_end(key)
                    found[key] = self._vectors[place].copy()
        return found

    def _remember(self, fresh: dict[_Key, NDArray[np.float32]]) -> None:
        with self._lock:
            for key, vector in fresh.items():
                if not self._places:
                    # A page of it takes no memory until a vector is written there.
                    capacity = self._max_bytes // (vector.nbytes + _ENTRY_OVERHEAD_BYTES)
                    self._vectors = np.empty((capacity, len(vector)), np.float32)
                if key in self._places or not len(self._vectors):
                    continue
                is_full = len(self._places) == len(self._vectors)
                place = self._places.popitem(last=False)[1] if is_full else len(self._places)
                self._vectors[place] = vector
                self._places[key] = place


def _embed_some(
    embed: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str], places: Sequence[int]
) -> NDArray[np.float32]:
    """Embed the texts at `places`; an error that names one of them names its place in `texts`."""
    counters.add("embedding_calls")
    counters.add("embedding_texts", len(places))
    try:
        return embed([texts[place] for place in places])
    except FootnoteError as error:
        if (index := error.extra.get("index")) is not None:
            error.extra["index"] = places[index]
        raise
