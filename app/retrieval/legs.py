"""Fetch each leg's lists: keywords beside the embedding of the queries, then the vectors on every processor."""

import contextvars
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from app.errors import EmbeddingUnavailable, FootnoteError, Unavailable, UpstreamRejected
from app.indexes.port import Candidates
from app.retrieval.dense import NOTHING, Vector, Vectors, exactly_nearest, find_by_vector, query_vectors
from app.retrieval.keyword import KeywordHits, find_by_terms
from app.retrieval.narrowing import narrow
from app.retrieval.restricting import nearest_admitted
from app.retrieval.run import SearchQueries, SearchRun

Found = TypeVar("Found")

_beside = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="keyword-leg")


@dataclass(frozen=True, slots=True)
class LegList:
    """What one leg found for one text; `keyword` tells how well the collection knows the words of that text."""

    leg: str
    candidates: Candidates
    keyword: KeywordHits | None = None
    """Of the keyword list of the same text, for a dense list too."""


@dataclass(frozen=True, slots=True)
class Legs:
    """Every list. `term_weights` are of the first query's terms."""

    lists: tuple[LegList, ...]
    term_weights: Mapping[str, float]


def fetch_legs(run: SearchRun, queries: SearchQueries) -> Legs:
    """Return the lists of every leg that answers; one that does not is named in `degraded` while another answers.

    Raises the legs' own error (502, 503) where none answers, and `EmbeddingModelMismatch`.
    """

    def embed() -> Vectors | None:
        if run.models.embedder is None:
            raise EmbeddingUnavailable("this search was given no embedding model")
        return query_vectors(run, run.models.embedder, queries)

    def look_up() -> list[KeywordHits]:
        return [find_by_terms(run, text) for text in queries.texts]

    vectors: Vectors | FootnoteError | None = None
    keyword: list[KeywordHits] | FootnoteError = []
    if run.plan.narrow_to_parents is not None:
        vectors = _attempt(embed) if "dense" in run.plan.legs else None
        narrow(run, None if isinstance(vectors, FootnoteError) else vectors)
        keyword = _attempt(look_up) if "keyword" in run.plan.legs else []
    elif len(run.plan.legs) > 1:
        vectors, keyword = _side_by_side(embed, look_up)
    elif "dense" in run.plan.legs:
        vectors = _attempt(embed)
    else:
        keyword = _attempt(look_up)
    failures = {
        leg: failure
        for leg, failure in (("dense", vectors), ("keyword", keyword))
        if isinstance(failure, FootnoteError)
    }
    if len(failures) == len(run.plan.legs):
        raise _worst(failures)
    _tell_failures(run, failures)
    hits = [] if isinstance(keyword, FootnoteError) else keyword
    lists: list[LegList] = []
    if "dense" in run.plan.legs and not isinstance(vectors, FootnoteError):
        lists += _dense_lists(run, vectors, hits)
    lists += [LegList("keyword", each.candidates, each) for each in hits]
    return Legs(tuple(lists), hits[0].term_weights if hits else {})


def _dense_lists(run: SearchRun, vectors: Vectors | None, hits: list[KeywordHits]) -> list[LegList]:
    run.query_vectors = vectors
    if vectors is None:
        return [LegList("dense", NOTHING)]
    return [
        LegList("dense", _nearest_told(run, vector, place), hits[place] if place < len(hits) else None)
        for place, vector in enumerate(vectors)
    ]


def _nearest_told(run: SearchRun, vector: Vector, place: int) -> Candidates:
    candidates = _nearest(run, vector)
    run.trace.add("dense", candidates, query=place, fields=list(run.plan.fields))
    return candidates


def _nearest(run: SearchRun, vector: Vector) -> Candidates:
    if run.inside is not None:
        return exactly_nearest(run, vector, run.inside)
    return nearest_admitted(run, vector) if run.restriction else find_by_vector(run, vector)


def _side_by_side(
    embed: Callable[[], Vectors | None], look_up: Callable[[], list[KeywordHits]]
) -> tuple[Vectors | FootnoteError | None, list[KeywordHits] | FootnoteError]:
    """Look terms up while the queries are embedded. The vectors are searched after both, on every processor."""
    future = _beside.submit(contextvars.copy_context().run, look_up)
    try:
        vectors = _attempt(embed)
    finally:
        # Also after an error: no leg may still read a collection that its caller closes. A call that still waits for
        # a thread is done here instead, so that a full pool delays nobody.
        keyword = _attempt(look_up if future.cancel() else future.result)
    return vectors, keyword


def _attempt(find: Callable[[], Found]) -> Found | FootnoteError:
    try:
        return find()
    except (Unavailable, UpstreamRejected) as failure:
        return failure


def _worst(failures: Mapping[str, FootnoteError]) -> FootnoteError:
    return next((error for error in failures.values() if isinstance(error, Unavailable)), next(iter(failures.values())))


def _tell_failures(run: SearchRun, failures: Mapping[str, FootnoteError]) -> None:
    for leg, error in failures.items():
        run.degraded.append(leg)
        run.warn(error.code, f"the {leg} leg did not answer: {error.detail}", leg=leg)
