"""What an embedder, a language model and a reranker must do.

A backend fails with its own kind of `Unavailable`, with `UpstreamAuthentication` or with `UpstreamRejected`, whose
words never hold an upstream's address or body. Nothing here needs numpy at run time: processes that only count tokens
import this file too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from app.embedding_space import EmbeddingSpace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FINGERPRINT_TEXT = "The answer stands on page seven of the handbook. 答案写在手册第七页。"
"""The passage whose vector is a space's fingerprint; changing it makes every stored fingerprint worthless."""


@dataclass(frozen=True, slots=True)
class TokenCounterSpec:
    """How another process can count this embedder's tokens without loading the embedder; plain values.

    `sentencepiece` reads the model file at `path`; `estimate` needs none and never counts too few
    for the texts it was measured on.
    """

    kind: Literal["sentencepiece", "estimate"]
    path: str | None = None


class Embedder(Protocol):
    """Turn texts into L2-normalised float32 vectors of one space. Thread-safe."""

    @property
    def space(self) -> EmbeddingSpace:
        """Return the space, fingerprint included; the first call may load a model or ask a server."""
        ...

    @property
    def window_tokens(self) -> int:
        """Return the longest text, in tokens and with its prefix, that is embedded whole."""
        ...

    @property
    def token_counter(self) -> TokenCounterSpec:
        """Return how to count tokens in another process."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per query: float32, shape (len(texts), dimensions), unit length."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per passage: float32, shape (len(texts), dimensions), unit length.

        A text above the window is never cut silently: the part that fits is embedded and a warning is logged;
        callers keep below the window by chunking with `token_counter`. One bad text raises `EmbeddingUnavailable` or
        `UpstreamRejected` with `extra={"index": i}` that names its place in `texts`.
        """
        ...

    def load(self) -> None:
        """Do now what the first call would wait for, as far as no server need be asked."""
        ...

    def close(self) -> None:
        """Release threads and connections."""
        ...


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of one text: unit vectors, float32, shape (tokens, dimensions), and what each of them stands for.

    The pieces joined are the text as the model reads it; a prefix and control tokens are not among them.
    """

    vectors: "NDArray[np.float32]"
    pieces: Sequence[str]


@runtime_checkable
class TokenEmbedder(Protocol):
    """What an embedder that shows its tokens does besides; both work in the caller's thread. Thread-safe.

    Raise `InvalidRequest` (`rerank_unsupported`) where the model's files give no token vectors.
    """

    @property
    def window_tokens(self) -> int:
        """Return the longest text, in tokens and with its prefix, that is embedded whole."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens of the window a passage takes."""
        ...

    def embed_query_tokens(self, text: str) -> TokenVectors:
        """Return the tokens of a query; what is above the window is left out with a logged warning."""
        ...

    def embed_passage_tokens(self, text: str) -> TokenVectors:
        """Return the tokens of a passage; what is above the window is left out with a logged warning."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model answered; `text` has no reasoning in it."""

    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str | None


class LanguageModel(Protocol):
    """Generate text. Thread-safe."""

    @property
    def name(self) -> str:
        """Return the model's name as the server knows it."""
        ...

    @property
    def context_tokens(self) -> int:
        """Return the model's window in tokens, prompt and answer together."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float,
        patient: bool = False,
        timeout_seconds: float | None = None,
    ) -> Completion:
        """Return the model's next message; `patient` waits for a busy server as only work in the background may.

        No attempt takes longer than `timeout_seconds`, and none begins after it; the configured limit by default.
        Raises `LanguageModelUnavailable` (time-out, 429 with its Retry-After, 5xx), `UpstreamAuthentication` (401, 403)
        or `UpstreamRejected` (anything that cannot be used).
        """
        ...

    def load(self) -> None:
        """Do now what the first call would wait for, without asking the server."""
        ...

    def close(self) -> None:
        """Release connections."""
        ...


class Reranker(Protocol):
    """Score how well passages answer a query. Thread-safe."""

    @property
    def window_tokens(self) -> int | None:
        """Return how much of query and text together is scored whole; callers cut what is longer. `None`: any."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens of the window a text takes, never too few."""
        ...

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> "NDArray[np.float32]":
        """Return one score per text, greater for a better one: float32, shape (len(texts),).

        Raises `RerankUnavailable` (late, busy, down), `UpstreamAuthentication` or `UpstreamRejected`.
        """
        ...

    def close(self) -> None:
        """Release threads and connections."""
        ...
