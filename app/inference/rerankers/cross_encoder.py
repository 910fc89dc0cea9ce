"""Score with a cross-encoder in this process: onnxruntime reads query and passage together, one pair a run."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import RerankUnavailable
from app.inference.remote import sendable
from app.inference.rerankers.cross_encoder_files import CrossEncoderFiles
from app.inference.rerankers.deadline import Deadline

DEFAULT_WINDOW_TOKENS = 512
"""Of a tokenizer.json that names no limit."""

_NUMBERS: Mapping[str, type] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: Any
    tokenizer: Any
    window_tokens: int
    inputs: Mapping[str, type]


class CrossEncoderReranker:
    """A model that gives one logit for a pair, or two of which the second means relevant.

    `find_files` runs, and the model loads, at first use; who waits for it longer than his time goes on without.
    """

    def __init__(self, find_files: Callable[[], CrossEncoderFiles], threads: int) -> None:
        self._find_files = find_files
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def window_tokens(self) -> int | None:
        """Return the longest pair that the model reads; loads the model."""
        return self._load().window_tokens

    def count_tokens(self, text: str) -> int:
        """Return the model's own count, control tokens included."""
        return len(self._load().tokenizer.encode(sendable(text)).ids)

    def scores(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> NDArray[np.float32]:
        """Return the probability of each text, from 0 to 1, that it answers the query."""
        deadline = Deadline(timeout_seconds)
        model = self._load(deadline)
        scores = np.zeros(len(texts), np.float32)
        for place, text in enumerate(texts):
            deadline.left()
            scores[place] = _probability(_logits(model, query, text))
        return scores

    def close(self) -> None:
        """Let go of the model."""
        self._loaded = None

    def _load(self, deadline: Deadline | None = None) -> _Loaded:
        if (loaded := self._loaded) is not None:
            return loaded
        if not self._lock.acquire(timeout=-1 if deadline is None else deadline.left()):
            raise RerankUnavailable("The cross-encoder is still being loaded", hint="try again in a moment")
        try:
            if self._loaded is None:
                self._loaded = _load(self._find_files(), self._threads)
            return self._loaded
        finally:
            self._lock.release()


def _load(files: CrossEncoderFiles, threads: int) -> _Loaded:
    # Imported here: the one needs an extra, the other 20 MB that a process without models does not spend.
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(files.graph), options, providers=["CPUExecutionProvider"])
        inputs = {each.name: _NUMBERS[each.type] for each in session.get_inputs()}
        tokenizer = tokenizers.Tokenizer.from_file(str(files.tokenizer))
    # Both libraries raise kinds of their own; whichever it is, these files are no model.
    except Exception as error:
        _logger.exception("the cross-encoder cannot be loaded")
        raise RerankUnavailable(
            "The cross-encoder's files cannot be loaded", hint="the service's log says why"
        ) from error
    window = (tokenizer.truncation or {}).get("max_length", DEFAULT_WINDOW_TOKENS)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Loaded(session, tokenizer, window, inputs)


def _logits(model: _Loaded, query: str, text: str) -> NDArray[np.float64]:
    pair = model.tokenizer.encode(sendable(query), sendable(text))
    if len(pair.ids) > model.window_tokens:
        _logger.warning("a pair above the cross-encoder's window was scored in part", extra={"tokens": len(pair.ids)})
        pair.truncate(model.window_tokens)
    values: dict[str, list[int]] = {
        "input_ids": pair.ids,
        "attention_mask": pair.attention_mask,
        "token_type_ids": pair.type_ids,
    }
    try:
        feed: dict[str, Any] = {name: np.array([values[name]], number) for name, number in model.inputs.items()}
        outputs = model.session.run(None, feed)
    # onnxruntime has no error of its own to name, and a graph may ask for what no tokenizer gives.
    except Exception as error:
        _logger.exception("the cross-encoder cannot score")
        raise RerankUnavailable("The cross-encoder cannot score", hint="the service's log says why") from error
    return np.asarray(outputs[0], np.float64).ravel()


def _probability(logits: NDArray[np.float64]) -> float:
    if len(logits) not in (1, 2):
        raise RerankUnavailable(f"The cross-encoder gives {len(logits)} numbers for a pair, not 1 or 2")
    if not np.isfinite(logits).all():
        raise RerankUnavailable("The cross-encoder gave a score that is no number", hint="check its files")
    difference = logits[-1] - (logits[0] if len(logits) > 1 else 0)
    return float(np.exp(-np.logaddexp(0, -difference)))
