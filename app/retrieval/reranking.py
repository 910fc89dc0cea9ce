"""Score the first hits again, by a model that reads query and passage together; late or failing leaves the order."""

import contextvars
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from app.domain import indexed_text
from app.errors import InvalidRequest, Misconfigured, RerankUnavailable, Unavailable, UpstreamRejected
from app.indexes.port import Candidates
from app.inference.port import Reranker
from app.inference.reranker_registry import Asked
from app.inference.rerankers.deadline import Deadline
from app.inference.rerankers.vocabulary import Vocabulary
from app.processors import processors
from app.retrieval.keyword import inverse_document_frequency
from app.retrieval.legs import Legs
from app.retrieval.plan import RerankOptions
from app.retrieval.ranking import RERANKED, Ranking
from app.retrieval.run import SearchRun
from app.retrieval.seen import seen_frequencies
from app.retrieval.windows import cut_windows

MOST_AT_ONCE = 32
"""Rerankings in work side by side, those included that nobody waits for any more; one more is not begun."""

Done = TypeVar("Done")

log = logging.getLogger(__name__)

_pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="rerank")
_free = threading.BoundedSemaphore(MOST_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Scored:
    """One score per text, of its best window; `windows` counts all of them."""

    scores: NDArray[np.float32]
    windows: int
    is_query_cut: bool


def rerank(run: SearchRun, ranking: Ranking, legs: Legs, query: str) -> Ranking:
    """Return the first hits in the reranker's order for the query, or the ranking as it is and `degraded: ["rerank"]`.

    Hits after the first `candidates` have no score to be compared by, so they are left out. Raises `InvalidRequest`
    for a reranker that is not there for this collection, unless it is optional.
    """
    options = run.plan.rerank
    if options is None or not len(ranking.candidates.keys):
        return ranking
    with run.timer.stage("rerank"):
        try:
            return _reranked(run, ranking, legs, query, options)
        except InvalidRequest as error:
            if not run.plan.is_rerank_optional:
                raise
            # A preset, or a collection's default, does what there are parts for, and tells the rest.
            run.warn(error.code, f"the hits are not reranked: {error.detail}", model=options.model)
            return ranking
        except Misconfigured as error:
            # What is wrong with an address or a folder is for the operator, not for the caller.
            log.warning("the reranker cannot be used", extra={"model": options.model, "reason": error.detail})
            return _left_out(run, ranking, error.code, "the service's reranker is not configured as it must be")
        except (Unavailable, UpstreamRejected) as error:
            return _left_out(run, ranking, error.code, error.detail)


def _left_out(run: SearchRun, ranking: Ranking, code: str, detail: str) -> Ranking:
    model = run.plan.rerank.model if run.plan.rerank else None
    run.degraded.append("rerank")
    run.warn(code, f"the order is that of the search alone: {detail}", model=model)
    run.trace.add("rerank", ranking.candidates, model=model, failure=code)
    return ranking


def _reranked(run: SearchRun, ranking: Ranking, legs: Legs, query: str, options: RerankOptions) -> Ranking:
    rerankers = run.models.rerankers
    if rerankers is None:
        raise RerankUnavailable("this search was given no reranker")
    reranker = rerankers.get(options.model, Asked(_vocabulary(run, legs, query), run.models.embedder, options.method))
    chunks = run.read(ranking.key_list()[: options.candidates])
    texts = [indexed_text(chunk.context, chunk.text) for chunk in chunks]
    deadline = Deadline(options.timeout_seconds or rerankers.timeout_seconds)
    scored = _in_time(lambda: _score(reranker, query, texts, deadline), deadline)
    if scored.is_query_cut:
        run.warn("rerank_query_cut", "the query is too long for the reranker, which read its beginning alone")
    # Equal scores keep the order in which the search had them.
    order = np.argsort(-scored.scores, kind="stable")
    keys = np.array([chunk.chunk_key for chunk in chunks], np.int64)
    candidates = Candidates(keys[order], scored.scores[order])
    run.trace.add("rerank", candidates, model=options.model, texts=len(texts), windows=scored.windows)
    return Ranking(candidates, RERANKED, _name(run, options))


def _name(run: SearchRun, options: RerankOptions) -> str | None:
    """Return the name of the reranker and of the model that it has here, `None` where its scores only count places."""
    if options.model == "llm" and options.method == "listwise":
        return None
    if options.model == "embedding" and run.models.embedder is not None:
        space = run.models.embedder.space
        return f"{options.model} {space.model} {space.dimensions}"
    # The others have one model in the whole service.
    return options.model


def _vocabulary(run: SearchRun, legs: Legs, query: str) -> Vocabulary:
    """Return what the collection knows of the query's terms, read now: a late reranker must not touch its files."""
    analyzer = run.opened.analyzer
    weights = legs.term_weights
    if not weights:
        terms = analyzer.query_terms(query)
        size, frequencies = run.opened.index.keyword.size(), seen_frequencies(run, terms)
        weights = {
            term: inverse_document_frequency(count, size) for term, count in zip(terms, frequencies, strict=True)
        }
    return Vocabulary(weights, analyzer.terms, analyzer.terms_with_offsets)


def _in_time(work: Callable[[], Done], deadline: Deadline) -> Done:
    """Return what the work gives, or raise `RerankUnavailable` at the deadline and leave it to its own time limits."""
    if not _free.acquire(blocking=False):
        raise RerankUnavailable(f"{MOST_AT_ONCE} rerankings are in work already", hint="try again in a moment")
    future = _pool.submit(contextvars.copy_context().run, work)
    future.add_done_callback(lambda _: _free.release())
    with processors.lent():
        wait([future], deadline.left())
    if not future.done():
        raise deadline.missed()
    return future.result()


def _score(reranker: Reranker, query: str, texts: Sequence[str], deadline: Deadline) -> _Scored:
    most = reranker.window_tokens
    asked = query
    windows = [[text] for text in texts]
    if most is not None:
        asked = cut_windows(query, max(1, most // 2), reranker.count_tokens)[0]
        room = max(1, most - reranker.count_tokens(asked))
        windows = [cut_windows(text, room, reranker.count_tokens) for text in texts]
    pieces = [piece for each in windows for piece in each]
    scores = reranker.scores(asked, pieces, timeout_seconds=deadline.left())
    starts = np.cumsum([0, *map(len, windows[:-1])])
    best: NDArray[np.float32] = np.maximum.reduceat(scores, starts) if len(windows) else scores
    return _Scored(best, len(pieces), is_query_cut=asked != query)
