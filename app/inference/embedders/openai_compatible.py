"""Embed through any OpenAI-compatible server, which is trusted with nothing: every answer is checked."""

import base64
import binascii
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.errors import UpstreamRejected
from app.inference.port import FINGERPRINT_TEXT, TokenCounterSpec
from app.inference.remote import PATIENT, PROMPT, Patience, Refused, RemoteServer, sendable

# Under the 1 MB that some servers accept, the rest of the body included.
_LARGEST_BODY_BYTES = 900_000

# What servers answer to a body that is too long, or to one text that they cannot take.
_TOO_MUCH = frozenset({400, 413, 422})


class OpenAICompatibleEmbedder:
    """Send texts in batches and check count, order, dimensions and finiteness of what comes back.

    A batch that is refused is halved until it is accepted or one text is left, which the error then names. The
    size that a server accepted after such a refusal is kept for later batches.
    """

    def __init__(
        self, server: RemoteServer, *, model: str, dimensions: int | None, window_tokens: int, batch: int
    ) -> None:
        self._server = server
        self._model = model
        self._asked_dimensions = dimensions
        self._window_tokens = window_tokens
        self._batch = batch
        self._lock = threading.Lock()
        self._dimensions = dimensions
        self._space: EmbeddingSpace | None = None

    @property
    def space(self) -> EmbeddingSpace:
        """Return the space; the first call asks the server for the fingerprint and so learns the dimensions."""
        if self._space is None:
            fingerprint = self.embed_passages([FINGERPRINT_TEXT])[0]
            values = tuple(fingerprint.tolist())
            self._space = EmbeddingSpace("openai_compatible", self._model, len(values), values)
        return self._space

    @property
    def window_tokens(self) -> int:
        """Return the configured window."""
        return self._window_tokens

    @property
    def token_counter(self) -> TokenCounterSpec:
        """Return the estimate, since the server's tokenizer is not known."""
        return TokenCounterSpec("estimate")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed with little patience, since a person waits."""
        return self._embed(texts, PROMPT)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed with patience, since a job waits."""
        return self._embed(texts, PATIENT)

    def load(self) -> None:
        """Make the client; no server is asked."""
        self._server.load()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _embed(self, texts: Sequence[str], patience: Patience) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.space.dimensions), np.float32)
        clean = [sendable(text) for text in texts]
        parts = []
        start = 0
        while start < len(clean):
            size = self._next_batch(clean, start)
            parts.append(self._embed_batch(clean[start : start + size], start, patience))
            start += size
        return np.concatenate(parts)

    def _next_batch(self, texts: Sequence[str], start: int) -> int:
        """Return how many texts from `start` on fit one request, at least one."""
        room = _LARGEST_BODY_BYTES
        for size, text in enumerate(texts[start : start + self._batch]):
            room -= len(json.dumps(text, ensure_ascii=False).encode()) + 1
            if room < 0:
                return max(1, size)
        return min(self._batch, len(texts) - start)

    def _embed_batch(self, texts: Sequence[str], start: int, patience: Patience) -> NDArray[np.float32]:
        """Embed one batch whose first text has the place `start` in the caller's list."""
        try:
            return self._request(texts, start, patience)
        except (Refused, _Mismatched) as error:
            if isinstance(error, Refused) and error.http_status not in _TOO_MUCH:
                raise
            reason = f"it answered {error.http_status}" if isinstance(error, Refused) else error.detail
        if len(texts) == 1:
            raise _rejected(reason, start)
        middle = len(texts) // 2
        halves = [
            self._embed_batch(texts[:middle], start, patience),
            self._embed_batch(texts[middle:], start + middle, patience),
        ]
        # Both halves passed, so the batch was too large for this server and no text is at fault.
        with self._lock:
            self._batch = min(self._batch, len(texts) - middle)
        return np.concatenate(halves)

    def _request(self, texts: Sequence[str], start: int, patience: Patience) -> NDArray[np.float32]:
        options: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._asked_dimensions is not None:
            options["dimensions"] = self._asked_dimensions
        answer = self._server.call(lambda client: client.embeddings.with_raw_response.create(**options), patience)
        rows = [self._unit_vector(value, start + place) for place, value in enumerate(_in_order(answer, len(texts)))]
        return np.stack(rows)

    def _unit_vector(self, value: Any, index: int) -> NDArray[np.float32]:
        vector = _numbers(value, index)
        if not np.isfinite(vector).all():
            raise _rejected("a vector with numbers that are not finite came back", index)
        largest = np.abs(vector).max(initial=0)
        if not largest:
            raise _rejected("a vector of zeros came back", index)
        with self._lock:
            self._dimensions = self._dimensions or len(vector)
        if len(vector) != self._dimensions:
            raise _rejected(f"a vector of {len(vector)} dimensions came back where {self._dimensions} were due", index)
        # Squares of very large or small numbers would leave the range of floats.
        vector /= largest
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class _Mismatched(UpstreamRejected):
    """The answer does not hold one vector for each text."""


def _rejected(reason: str, index: int) -> UpstreamRejected:
    return UpstreamRejected(
        f"The embedding server cannot embed one of the texts: {reason}",
        hint="shorten or change that text, or check the model's settings",
        extra={"index": index},
    )


def _in_order(answer: dict[str, Any], count: int) -> Iterator[Any]:
    """Yield the embeddings by the place of their text; servers may answer in another order."""
    data = answer.get("data")
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        raise _Mismatched(f"the answer does not hold {count} vectors")
    places = [item.get("index", place) for place, item in enumerate(data)]
    if not all(isinstance(place, int) for place in places) or set(places) != set(range(count)):
        raise _Mismatched(f"the answer's vectors are not numbered from 0 to {count - 1}")
    by_place = dict(zip(places, data, strict=True))
    return (by_place[place].get("embedding") for place in range(count))


def _numbers(value: Any, index: int) -> NDArray[np.float64]:
    """Return a list of floats, or the little-endian float32 that some servers send in base64 all the same."""
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4").astype(np.float64)
        vector = np.array(value, np.float64)
    except (TypeError, ValueError, binascii.Error):
        raise _rejected("what came back for it is not a vector", index) from None
    if vector.ndim != 1:
        raise _rejected("what came back for it is not a vector", index)
    return vector
