"""What a search looks for: the query as it came, or what a language model makes of it first.

Multi-query: RAG-Fusion, Rackauckas 2024. HyDE: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance
Labels". Decomposition: Khot et al. 2022. What the caller wrote is material for the model, never an instruction.
"""

import contextvars
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from app.errors import FootnoteError, LanguageModelUnavailable, Unavailable, UpstreamRejected
from app.inference.port import LanguageModel, Message
from app.inference.quoting import as_data, without_control_tokens
from app.processors import processors
from app.retrieval.plan import SearchPlan
from app.retrieval.planning import clean_query
from app.retrieval.run import SearchQueries, SearchRun
from app.telemetry import counters

MOST_HISTORY_CHARACTERS = 6000
"""The end of a conversation that a rewriting model reads."""

MOST_QUERY_CHARACTERS = 4000
"""The start of a long query that a model reads; the search itself uses all of it."""

MOST_PARTS = 4
"""Sub-questions that one question is taken apart into."""

LONGEST_LINE = 1000

LONGEST_PASSAGE = 4000

_LINE_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):、])\s*")
_QUOTES = "\"'“”‘’「」`"

_REWRITE = (
    "You turn the last message of a conversation into one search query that can be understood without the "
    "conversation: put names in the place of words like it, they, there; leave out greetings and chatter; keep the "
    "language of the last message. Do not answer it. Reply with the query alone, on one line."
)
_VARIANTS = (
    "You write other wordings of a search query, with other words of the same meaning, in the language of the query. "
    "Do not answer it. Reply with {count} lines, one wording on each, and nothing else."
)
_PARTS = (
    "You take a question apart into the simpler questions that must be answered first, at most {count}, in the "
    "language of the question. A simple question is its own only part. Do not answer. Reply with one question on "
    "each line and nothing else."
)
_PASSAGE = (
    "You write the passage of a document that would answer a question: three or four plain sentences in the language "
    "of the question, as a reference work would put it. Reply with the passage alone."
)

Made = TypeVar("Made")

_asking = ThreadPoolExecutor(max_workers=16, thread_name_prefix="transform")


@dataclass(frozen=True, slots=True)
class _Ask:
    """The language model, and until when all that it is asked about one search must be answered."""

    model: LanguageModel
    seconds: float
    end: float
    """On the clock of `time.monotonic`."""

    def left(self) -> float:
        """Return the seconds that are left, above 0; raises `LanguageModelUnavailable` where none are."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.late()
        return left

    def late(self) -> LanguageModelUnavailable:
        """Return the error of a model that took longer."""
        return LanguageModelUnavailable(f"The language model took longer than {self.seconds:g} s")

    def lines(self, instruction: str, content: str, count: int) -> list[str]:
        """Return up to `count` distinct lines of the answer, without list marks and quotes."""
        text = self.text(instruction, content, max_tokens=100 * count)
        lines = (_LINE_MARK.sub("", line).strip().strip(_QUOTES).strip() for line in text.splitlines())
        return list(dict.fromkeys(clean_query(line[:LONGEST_LINE]) for line in lines if line))[:count]

    def text(self, instruction: str, content: str, *, max_tokens: int) -> str:
        """Return the answer; raises what the model raises."""
        messages = [Message("system", instruction), Message("user", content)]
        answer = self.model.complete(messages, max_tokens=max_tokens, temperature=0.0, timeout_seconds=self.left())
        counters.add("query_transforms")
        return clean_query(answer.text)


def transform_queries(run: SearchRun) -> SearchQueries:
    """Return the texts to search for.

    Without a language model, or where it does not answer, the query stays as it came: a warning tells so, and a
    failure is `degraded` too.
    """
    if run.shared is None:
        return _transformed(run)
    asked = (run.plan.query, run.plan.queries, run.plan.messages, run.plan.transform)
    if asked not in run.shared.queries:
        run.shared.queries[asked] = _transformed(run)
    return run.shared.queries[asked]


def _transformed(run: SearchRun) -> SearchQueries:
    plan = run.plan
    given = (plan.query, *plan.queries)
    if not plan.transform.is_wanted:
        return SearchQueries(given)
    if run.models.language_model is None:
        run.warn(
            "no_language_model",
            "no language model is configured (FOOTNOTE_LANGUAGE_MODEL), so the query was searched as it is",
        )
        return SearchQueries(given)
    seconds = run.models.transform_seconds
    with run.timer.stage("transform"), processors.lent():
        return _asked(run, _Ask(run.models.language_model, seconds, time.monotonic() + seconds), given)


def _asked(run: SearchRun, ask: _Ask, given: tuple[str, ...]) -> SearchQueries:
    wanted = run.plan.transform
    query = given[0]
    if wanted.rewrite:
        query = _waited(run, ask, "rewrite", _started(lambda: _rewritten(ask, run.plan))) or query
    # Each looks at the query alone, so none waits for another.
    asked: dict[str, Future[list[str]]] = {}
    if wanted.multi_query:
        asked["multi_query"] = _started(lambda: ask.lines(*_about(_VARIANTS, query, wanted.multi_query)))
    if wanted.decompose:
        asked["decompose"] = _started(lambda: ask.lines(*_about(_PARTS, query, MOST_PARTS)))
    if wanted.hyde:
        asked["hyde"] = _started(lambda: [ask.text(_PASSAGE, _told(query), max_tokens=300)[:LONGEST_PASSAGE]])
    made = {name: _waited(run, ask, name, future) or [] for name, future in asked.items()}
    more = [*made.get("multi_query", []), *made.get("decompose", [])]
    texts = _first(run, tuple(dict.fromkeys((query, *given[1:], *more))))
    hypothetical = tuple(text for text in made.get("hyde", []) if text)
    run.trace.add("transform", queries=list(texts), hypothetical=list(hypothetical))
    return SearchQueries(texts, hypothetical)


def _first(run: SearchRun, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return as many of the texts as are searched for; tell where there are more."""
    most = run.plan.limits.queries
    if len(texts) > most:
        detail = f"the first {most} of {len(texts)} queries are searched for (FOOTNOTE_MAX_QUERIES)"
        run.warn("queries_cut", detail, limit=most, queries=len(texts))
    return texts[:most]


def _about(instruction: str, query: str, count: int) -> tuple[str, str, int]:
    return instruction.format(count=count), _told(query), count


def _told(query: str) -> str:
    return without_control_tokens(query[:MOST_QUERY_CHARACTERS])


def _rewritten(ask: _Ask, plan: SearchPlan) -> str:
    """Return the query on its own, empty where the model said nothing."""
    turns = [f"{message.role}: {message.content}" for message in plan.messages]
    history = "\n".join(turns)[-MOST_HISTORY_CHARACTERS:]
    # As JSON, so that no text of the conversation can pass for its frame.
    asked = {"conversation": history, "last_message": plan.query[:MOST_QUERY_CHARACTERS]}
    return next(iter(ask.lines(_REWRITE, as_data(asked), 1)), "")


def _started(call: Callable[[], Made]) -> "Future[Made]":
    return _asking.submit(contextvars.copy_context().run, call)


def _waited(run: SearchRun, ask: _Ask, name: str, future: "Future[Made]") -> Made | None:
    try:
        # The model's own limit counts from byte to byte: one that drips would hold the search for ever.
        return future.result(ask.left())
    except TimeoutError:
        future.cancel()
        _tell(run, name, ask.late())
        return None
    except (Unavailable, UpstreamRejected) as failure:
        _tell(run, name, failure)
        return None


def _tell(run: SearchRun, name: str, failure: FootnoteError) -> None:
    if "transform" not in run.degraded:
        run.degraded.append("transform")
    run.warn(failure.code, f"{name} was left out: {failure.detail}", transform=name)
