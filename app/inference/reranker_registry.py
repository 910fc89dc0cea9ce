"""Every reranker by name; adding one is a file and a line here."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from app.errors import InvalidRequest
from app.inference.embedding_cache import token_embedder
from app.inference.port import Embedder, LanguageModel, Reranker
from app.inference.rerankers.cross_encoder import CrossEncoderReranker
from app.inference.rerankers.cross_encoder_files import cross_encoder_files
from app.inference.rerankers.http import HttpReranker
from app.inference.rerankers.language_model import LanguageModelReranker, Method
from app.inference.rerankers.late_interaction import LateInteractionReranker
from app.inference.rerankers.lexical import LexicalReranker
from app.inference.rerankers.vocabulary import Vocabulary
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search brings to its reranker. `method` is how a language model is asked."""

    vocabulary: Vocabulary
    embedder: Embedder | None = None
    method: Method = "pointwise"


class Rerankers:
    """The process's rerankers by name, made at first use; what holds a connection or a model is made once. Thread-safe.

    Nothing waits in `get`: a model is loaded, and a server called, by the first scores asked for.
    """

    def __init__(self, settings: Settings, language_model: LanguageModel | None) -> None:
        self.settings = settings
        self.timeout_seconds = settings.rerank_timeout_seconds
        self.language_model = language_model
        self.judging = ThreadPoolExecutor(settings.rerank_requests, thread_name_prefix="rerank-judge")
        self.embedding = ThreadPoolExecutor(settings.embedding_threads, thread_name_prefix="rerank-embed")
        self._lock = threading.Lock()
        self._kept: dict[str, Reranker] = {}

    def get(self, name: str, asked: Asked) -> Reranker:
        """Return the reranker of that name for one search.

        Raises `InvalidRequest` for an unknown one, and where the settings or the collection's model do not allow it
        (`rerank_unsupported`).
        """
        if name not in RERANKERS:
            raise InvalidRequest(f"{name!r} is no reranker", hint=f"choose one of {', '.join(RERANKERS)}")
        return RERANKERS[name](self, asked)

    def once(self, name: str, make: Callable[[], Reranker]) -> Reranker:
        """Return the one reranker of that name, made by the first who asks."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    def close(self) -> None:
        """Close every reranker that was made, without waiting for those that hang."""
        self.judging.shutdown(wait=False, cancel_futures=True)
        self.embedding.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for reranker in self._kept.values():
                reranker.close()
            self._kept.clear()


def _lexical(_rerankers: Rerankers, asked: Asked) -> Reranker:
    return LexicalReranker(asked.vocabulary)


def _late_interaction(rerankers: Rerankers, asked: Asked) -> Reranker:
    embedder = token_embedder(asked.embedder)
    if embedder is None:
        raise _unsupported(
            "the reranker `embedding` needs vectors of tokens, which this collection's embedding model does not give",
            "use another reranker, or a collection of the embedded model",
        )
    return LateInteractionReranker(embedder, asked.vocabulary, rerankers.embedding)


def _http(rerankers: Rerankers, _asked: Asked) -> Reranker:
    settings = rerankers.settings
    base_url = settings.rerank_base_url
    if base_url is None:
        raise _unsupported("no rerank server is configured", "set FOOTNOTE_RERANK_BASE_URL")
    return rerankers.once(
        "http",
        lambda: HttpReranker(
            base_url=base_url,
            api_key=settings.rerank_api_key.get_secret_value() if settings.rerank_api_key else None,
            model=settings.rerank_model,
            window_tokens=settings.rerank_window_tokens,
        ),
    )


def _cross_encoder(rerankers: Rerankers, _asked: Asked) -> Reranker:
    settings = rerankers.settings
    configured = settings.cross_encoder
    if configured is None:
        raise _unsupported("no cross-encoder is configured", "set FOOTNOTE_CROSS_ENCODER")
    if find_spec("tokenizers") is None:
        raise _unsupported(
            "the reranker `cross_encoder` needs the extra footnote[fastembed]", "pip install 'footnote[fastembed]'"
        )
    return rerankers.once(
        "cross_encoder",
        lambda: CrossEncoderReranker(
            partial(cross_encoder_files, configured, settings.models_folder), threads=settings.embedding_threads
        ),
    )


def _language_model(rerankers: Rerankers, asked: Asked) -> Reranker:
    if rerankers.language_model is None:
        raise _unsupported("no language model is configured", "set FOOTNOTE_LANGUAGE_MODEL")
    return LanguageModelReranker(rerankers.language_model, rerankers.judging, asked.method)


def _unsupported(detail: str, hint: str) -> InvalidRequest:
    return InvalidRequest(detail, code="rerank_unsupported", hint=hint)


RERANKERS: Mapping[str, Callable[[Rerankers, Asked], Reranker]] = {
    "lexical": _lexical,
    "embedding": _late_interaction,
    "http": _http,
    "cross_encoder": _cross_encoder,
    "llm": _language_model,
}
