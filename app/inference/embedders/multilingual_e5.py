"""Embed with multilingual-e5-small in this process: onnxruntime, one text a run, 384 dimensions."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.errors import EmbeddingUnavailable, InvalidRequest
from app.inference.embedders.e5_files import ModelFiles
from app.inference.embedders.sentencepiece_tokenizer import PASSAGE_PREFIX, QUERY_PREFIX, SentencePieceTokenizer
from app.inference.port import FINGERPRINT_TEXT, TokenCounterSpec, TokenVectors
from app.telemetry import counters

DIMENSIONS = 384
WINDOW_TOKENS = 512

# What the graph takes and gives; e5_graph.py, which builds it, imports onnx.
_IDS = "input_ids"
_TOKENS = "token_states"
_SMALLEST_LENGTH = 1e-9

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: Any
    tokenizer: SentencePieceTokenizer
    outputs: Sequence[str]
    """The vector's name first; an operator's own graph may give no tokens."""


class MultilingualE5:
    """Embed texts one by one on a few threads; `find_files` runs, and the model loads, at first use.

    One text a run needs no padding and gives a text the same vector whatever it is embedded with.
    """

    def __init__(self, name: str, find_files: Callable[[], ModelFiles], threads: int) -> None:
        self._name = name
        self._find_files = find_files
        self._lock = threading.RLock()
        self._files: ModelFiles | None = None
        self._loaded: _Loaded | None = None
        self._space: EmbeddingSpace | None = None
        # Threads start when there is work for them.
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embed")

    @property
    def space(self) -> EmbeddingSpace:
        """Return the space; the first call loads the model and embeds the fingerprint's sentence."""
        if self._space is None:
            vector = self.embed_passages([FINGERPRINT_TEXT])[0]
            self._space = EmbeddingSpace("local", self._name, DIMENSIONS, tuple(vector.tolist()))
        return self._space

    @property
    def window_tokens(self) -> int:
        """Return the encoder's number of positions."""
        return WINDOW_TOKENS

    @property
    def token_counter(self) -> TokenCounterSpec:
        """Return the vocabulary's place; the first call of a machine converts the model."""
        return TokenCounterSpec("sentencepiece", str(self._model_files().tokenizer.absolute()))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed in the caller's thread, so that a search never waits behind the passages of an ingest."""
        return self._embed(QUERY_PREFIX, texts, map)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed on the embedder's threads, the longest first, so that they end together."""
        return self._embed(PASSAGE_PREFIX, texts, self._pool.map if len(texts) > 1 else map)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the encoder reads when the text is embedded as a passage."""
        return self._load().tokenizer.count_passage(text)

    def embed_query_tokens(self, text: str) -> TokenVectors:
        """Return the last layer's states of the query's tokens, as unit vectors."""
        return self._embed_tokens(QUERY_PREFIX, text)

    def embed_passage_tokens(self, text: str) -> TokenVectors:
        """Return the last layer's states of the passage's tokens, as unit vectors."""
        return self._embed_tokens(PASSAGE_PREFIX, text)

    def load(self) -> None:
        """Load the model and let it embed once, which lays out its memory."""
        self.embed_queries(["ready?"])

    def close(self) -> None:
        """Stop the threads and let go of the model."""
        self._pool.shutdown()
        with self._lock:
            self._loaded = None

    def _embed(self, prefix: str, texts: Sequence[str], mapped: Callable[..., Any]) -> NDArray[np.float32]:
        model = self._load()
        ids = self._within_window(model.tokenizer, model.tokenizer.encode([prefix + text for text in texts]))
        longest_first = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        vectors = np.empty((len(ids), DIMENSIONS), np.float32)
        runs = mapped(lambda place: _run(model, model.outputs[0], ids[place]), longest_first)
        for place, vector in zip(longest_first, runs, strict=True):
            vectors[place] = vector
        return vectors

    def _embed_tokens(self, prefix: str, text: str) -> TokenVectors:
        model = self._load()
        if _TOKENS not in model.outputs:
            raise InvalidRequest(
                f"the model {self._name!r} gives no vectors of tokens, which the reranker `embedding` needs",
                code="rerank_unsupported",
                hint="use another reranker, or the embedded model as this service converts it",
            )
        before, whole = model.tokenizer.encode([prefix, prefix + text])
        (ids,) = self._within_window(model.tokenizer, [whole])
        start = len(before) - 1
        states = _run(model, _TOKENS, ids)[start:-1]
        vectors = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), _SMALLEST_LENGTH)
        return TokenVectors(vectors, model.tokenizer.pieces(ids[start:-1]))

    def _within_window(self, tokenizer: SentencePieceTokenizer, texts: list[list[int]]) -> list[list[int]]:
        over = [len(ids) for ids in texts if len(ids) > WINDOW_TOKENS]
        if not over:
            return texts
        counters.add("embedding_truncated", len(over))
        _logger.warning(
            "texts above the model's window were embedded in part",
            extra={"texts": len(over), "longest_tokens": max(over), "window_tokens": WINDOW_TOKENS},
        )
        return [ids if len(ids) <= WINDOW_TOKENS else tokenizer.shorten(ids, WINDOW_TOKENS) for ids in texts]

    def _model_files(self) -> ModelFiles:
        with self._lock:
            if self._files is None:
                self._files = self._find_files()
            return self._files

    def _load(self) -> _Loaded:
        if (loaded := self._loaded) is not None:
            return loaded
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._model_files())
            return self._loaded


def _load(files: ModelFiles) -> _Loaded:
    try:
        session = _session(files)
        outputs = [output.name for output in session.get_outputs()]
        return _Loaded(session, SentencePieceTokenizer(files.tokenizer), outputs)
    # Both libraries raise kinds of their own; whichever it is, these files are no model.
    except Exception as error:
        _logger.exception("the local model cannot be loaded")
        raise EmbeddingUnavailable(
            "The local model's files cannot be loaded", hint="the service's log says why"
        ) from error


def _run(model: _Loaded, output: str, ids: list[int]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = model.session.run([output], {_IDS: np.array([ids], np.int32)})[0][0]
    return result


def _session(files: ModelFiles) -> Any:
    # Imported here: 20 MB and 50 ms that a process without the embedded model does not spend.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Higher levels fuse into a SkipLayerNormalization that is several times slower on a CPU.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(files.graph), options, providers=["CPUExecutionProvider"])
    inputs = [value.name for value in session.get_inputs()]
    shape = session.get_outputs()[0].shape
    if inputs != [_IDS] or len(shape) != 2 or shape[1] != DIMENSIONS:
        raise ValueError(f"the graph takes {inputs} and gives {shape}, not input_ids and a vector of {DIMENSIONS}")
    return session
