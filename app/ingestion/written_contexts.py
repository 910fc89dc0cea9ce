"""Have a language model write each chunk's context; where it cannot, title and headings stand alone.

It runs in the worker, since the process that parses has no network. Each answer is kept as it comes.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

from app.domain import Chunk, Notice, text_hash
from app.errors import LanguageModelUnavailable, UpstreamAuthentication, UpstreamRejected
from app.inference.port import Completion, LanguageModel
from app.ingestion.context_prompts import DocumentWindows, document_windows
from app.ingestion.port import CountTokens, JobReport
from app.ingestion.side_by_side import side_by_side
from app.stores.port import CollectionStore
from app.telemetry import counters

UNAVAILABLE = "contextualizer_unavailable"

MOST_REJECTIONS = 3
"""Useless answers more than useful ones, after which the model is asked for no others."""

_Asked: TypeAlias = tuple[bytes, Chunk]
_Answer: TypeAlias = Completion | LanguageModelUnavailable | UpstreamRejected


@dataclass(frozen=True, slots=True)
class ContextWriter:
    """The model that writes contexts of at most so many tokens, and how many are asked for side by side."""

    model: LanguageModel | None
    max_tokens: int
    requests: int


@dataclass(frozen=True, slots=True)
class WrittenContexts:
    """What a model wrote, by SHA-256 of the clean text, what it took, and what is missing."""

    contexts: Mapping[bytes, str]
    cost: Mapping[str, Any]
    warnings: tuple[Notice, ...] = ()


class _Asking:
    """The questions about one document: what came back so far, and why no more is asked."""

    def __init__(self, known: Mapping[bytes, str], store: CollectionStore, report: JobReport, reused: int) -> None:
        self.contexts = dict(known)
        self.cost = {"written": 0, "reused": reused, "prompt_tokens": 0, "completion_tokens": 0}
        self.failure = ""
        self.may_pass = False
        self.has_given_up = False
        self._rejected = 0
        self._store, self._report = store, report

    def take(self, digest: bytes, answer: _Answer) -> None:
        """Keep an answer, and give up where none of use can be expected any more."""
        counters.add("contextualizer_calls")
        if isinstance(answer, Completion):
            self.contexts[digest] = " ".join(answer.text.split())
            self._store.stage_contexts(self._report.job_id, {digest: self.contexts[digest]})
            self.cost["written"] += 1
            for name in ("prompt_tokens", "completion_tokens"):
                self.cost[name] += getattr(answer, name)
                counters.add(f"contextualizer_{name}", getattr(answer, name))
        else:
            self.failure = answer.detail
            self._rejected += 1
            self.may_pass = self.may_pass or isinstance(answer, LanguageModelUnavailable | UpstreamAuthentication)
            self.has_given_up = self.may_pass or self._rejected > self.cost["written"] + MOST_REJECTIONS
        self.tell()

    def tell(self) -> None:
        """Report how many chunks are done; raise `Cancelled` if the job was cancelled."""
        self._report.advance(self.cost["reused"] + self.cost["written"] + self._rejected)


def write_contexts(
    chunks: Sequence[Chunk],
    *,
    text: str,
    title: str,
    known: Mapping[bytes, str],
    writer: ContextWriter,
    store: CollectionStore,
    report: JobReport,
) -> WrittenContexts:
    """Return a context of each of the chunks, asking only for those that are not `known`.

    Both are by SHA-256 of the clean text. Without a model, or where it fails, some are missing and a warning says so.
    """
    by_hash = {text_hash(chunk.text): chunk for chunk in chunks}
    missing = [(digest, chunk) for digest, chunk in by_hash.items() if digest not in known]
    report.stage("contextualize", total=len(by_hash), unit="chunks")
    asking = _Asking(
        {digest: known[digest] for digest in by_hash if digest in known}, store, report, len(by_hash) - len(missing)
    )
    if missing:
        _ask_for(missing, text, title, writer, asking)
    left = len(by_hash) - len(asking.contexts)
    cost = asking.cost | {"missing": left, "model": writer.model.name if writer.model else None}
    if not left:
        return WrittenContexts(asking.contexts, cost)
    detail = f"{left} of {len(by_hash)} chunks have title and headings only as their context: {asking.failure}"
    return WrittenContexts(
        asking.contexts, cost, (Notice(UNAVAILABLE, detail, {"chunks": left, "may_pass": asking.may_pass}),)
    )


def with_written_context(chunk: Chunk, written: str, count_tokens: CountTokens, window_tokens: int) -> Chunk:
    """Return the chunk with as much of what was written, before its own context, as fits into the window."""

    def described(length: int) -> Chunk:
        return replace(chunk, context="\n".join(filter(None, (written[:length], chunk.context))))

    def exceeds(length: int) -> bool:
        return count_tokens(described(length).indexed_text) > window_tokens

    length = len(written)
    if exceeds(length):
        length = max(0, bisect_left(range(length), True, key=exceeds) - 1)
        # Not in the midst of a word, where the writing has spaces.
        length = max(0, written.rfind(" ", 0, length + 1)) or length
    return replace(described(length), written_context=written)


def _ask_for(missing: Sequence[_Asked], text: str, title: str, writer: ContextWriter, asking: _Asking) -> None:
    model = writer.model
    if model is None:
        asking.failure, asking.may_pass = "no language model is configured", True
        return
    windows = document_windows(
        text,
        title,
        [chunk for _, chunk in missing],
        context_tokens=model.context_tokens,
        answer_tokens=writer.max_tokens,
    )
    if windows is None:
        asking.failure = f"the language model's window of {model.context_tokens} tokens is too small for it"
        return
    for window, some in groupby(missing, lambda asked: windows.window_of(asked[1])):
        first, *rest = some
        ask = partial(_ask, model, writer.max_tokens, windows, window)
        # The first goes alone: a server that keeps what it has read of a prompt then has it for the others.
        for batch, width in (([first], 1), (rest, writer.requests)):
            _ask_side_by_side(ask, batch, width, asking)
            if asking.has_given_up:
                return


def _ask(model: LanguageModel, max_tokens: int, windows: DocumentWindows, window: int, asked: _Asked) -> _Answer:
    try:
        return model.complete(windows.prompt(window, asked[1]), max_tokens=max_tokens, temperature=0.0, patient=True)
    except (LanguageModelUnavailable, UpstreamRejected) as failure:
        return failure


def _ask_side_by_side(ask: Callable[[_Asked], _Answer], batch: Sequence[_Asked], width: int, asking: _Asking) -> None:
    with closing(side_by_side(ask, batch, width)) as answers:
        for answered in answers:
            if answered is None:
                asking.tell()
                continue
            (digest, _), answer = answered
            asking.take(digest, answer)
            if asking.has_given_up:
                return
