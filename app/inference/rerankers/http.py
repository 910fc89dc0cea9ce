"""Ask a rerank server over HTTP: Cohere, Jina, Voyage, vLLM, llama.cpp or Text Embeddings Inference (TEI).

All of them take a query with texts at `/rerank` and answer with numbered scores; TEI alone calls the texts `texts`.
No address and no word of a server stands in an error or a log.
"""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from app.errors import FootnoteError, Misconfigured, RerankUnavailable, UpstreamAuthentication, UpstreamRejected
from app.inference.remote import sendable
from app.inference.rerankers.deadline import Deadline
from app.inference.token_counter import estimate_tokens

if TYPE_CHECKING:
    import httpx2

_VERSION = re.compile(r"/v\d+(?:/|$)")
_CONNECT_SECONDS = 5.0
_PASSING = frozenset({408, 409, 429})
_LONGEST_ANSWER_BYTES = 32_000_000
_LARGEST = float(np.finfo(np.float32).max)

_TEXTS_IN_A_REQUEST = {"documents": 500, "texts": 32}
"""What the servers of each shape take by default."""


class HttpReranker:
    """One rerank server; a base URL with a version in its path (`/v1`, `/v2`) is one of the `documents` shape.

    TEI has none. `window_tokens` is the window of the served model, for query and text together.
    """

    def __init__(self, *, base_url: str, api_key: str | None, model: str | None, window_tokens: int) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise Misconfigured("FOOTNOTE_RERANK_BASE_URL must begin with http:// or https://")
        root = base_url.rstrip("/").removesuffix("/rerank")
        self._url = f"{root}/rerank"
        self._shape = "documents" if _VERSION.search(root) else "texts"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._model = model
        self._window_tokens = window_tokens
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    @property
    def window_tokens(self) -> int | None:
        """Return the configured window."""
        return self._window_tokens

    def count_tokens(self, text: str) -> int:
        """Return an estimate that the server's tokenizer stays below."""
        return estimate_tokens(text)

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NDArray[np.float32]:
        """Return the server's own scores, in whatever range it gives them; raises what the port says."""
        deadline = Deadline(timeout_seconds)
        size = _TEXTS_IN_A_REQUEST[self._shape]
        found = [np.zeros(0, np.float32)]
        for begin in range(0, len(texts), size):
            batch = [sendable(text) for text in texts[begin : begin + size]]
            answer = self._ask({"query": sendable(query), self._shape: batch}, deadline)
            found.append(_scores_in(answer, len(batch)))
        return np.concatenate(found)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _ask(self, body: dict[str, Any], deadline: Deadline) -> Any:
        if self._model:
            body["model"] = self._model
        outcome = self._attempt(body, deadline)
        # Raised here, outside any handler, so that no error of the client's, which names the address, hangs on to it.
        if isinstance(outcome, FootnoteError):
            raise outcome
        try:
            return json.loads(outcome)
        except (ValueError, RecursionError):
            pass
        raise UpstreamRejected("The rerank server did not answer with JSON", hint="check FOOTNOTE_RERANK_BASE_URL")

    def _attempt(self, body: dict[str, Any], deadline: Deadline) -> bytes | FootnoteError:
        import httpx2

        left = deadline.left()
        timeout = httpx2.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        try:
            with self._opened().stream("POST", self._url, json=body, timeout=timeout) as response:
                return _failure(response) or _read(response, deadline)
        except httpx2.TimeoutException:
            return deadline.missed()
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return RerankUnavailable("The rerank server did not answer", hint="try again later")

    def _opened(self) -> "httpx2.Client":
        with self._lock:
            if self._client is None:
                # Imported here: 0.3 s that a process without a rerank server does not spend.
                import httpx2

                self._client = httpx2.Client(headers=self._headers)
            return self._client


def _failure(response: "httpx2.Response") -> FootnoteError | None:
    status = response.status_code
    if response.is_success:
        return None
    if status in (401, 403):
        return UpstreamAuthentication(
            f"The rerank server refused the configured key with {status}", hint="check FOOTNOTE_RERANK_API_KEY"
        )
    if status in _PASSING or status >= 500:
        return RerankUnavailable(f"The rerank server answered {status}", hint="try again later")
    hint = "check FOOTNOTE_RERANK_BASE_URL and FOOTNOTE_RERANK_MODEL" if status in (400, 404, 422) else None
    return UpstreamRejected(f"The rerank server refused the request with {status}", hint=hint)


def _read(response: "httpx2.Response", deadline: Deadline) -> bytes | FootnoteError:
    """Return the body; a server that sends it drop by drop is cut off at the deadline."""
    content = bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > _LONGEST_ANSWER_BYTES:
            return UpstreamRejected(f"The rerank server's answer is longer than {_LONGEST_ANSWER_BYTES} bytes")
        deadline.left()
    return bytes(content)


def _scores_in(answer: Any, count: int) -> NDArray[np.float32]:
    """Return the scores by the place of their text; servers answer best first, or in any order."""
    if isinstance(answer, dict):
        answer = answer.get("results", answer.get("data"))
    pairs = dict(_numbered(answer)) if isinstance(answer, list) and len(answer) == count else {}
    if set(pairs) != set(range(count)):
        raise UpstreamRejected(f"The rerank server did not answer with one score for each of {count} texts")
    return np.array([pairs[place] for place in range(count)], np.float32)


def _numbered(items: list[Any]) -> Iterator[tuple[float, float]]:
    for item in items:
        result = item if isinstance(item, dict) else {}
        place, score = result.get("index"), result.get("relevance_score", result.get("score"))
        if not _is_number(place) or not _is_number(score):
            raise UpstreamRejected("The rerank server's answer holds a result without an index or a score")
        yield place, score


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST
