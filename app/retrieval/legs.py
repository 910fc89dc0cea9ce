"""Fetch each leg's lists: keywords beside the embedding of the queries, then the vectors on every processor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from app.errors import EmbeddingUnavailable, FootnoteError, Unavailable, UpstreamRejected
from app.indexes.port import Candidates
from app.processors import processors
from app.retrieval.dense import NOTHING, Vector, Vectors, exactly_nearest, find_by_vector, query_vectors
from app.retrieval.keyword import KeywordHits, find_by_terms
from app.retrieval.narrowing import narrow
from app.retrieval.restricting import nearest_admitted
from app.retrieval.run import SearchQueries, SearchRun

Found = TypeVar("Found")


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

    dense: list[Candidates] | FootnoteError = []
    keyword: list[KeywordHits] | FootnoteError = []
    if run.plan.narrow_to_parents is not None:
        vectors = _attempt(embed) if "dense" in run.plan.legs else None
        narrow(run, None if isinstance(vectors, FootnoteError) else vectors)
        dense = vectors if isinstance(vectors, FootnoteError) else _all_nearest(run, vectors)
        keyword = _attempt(look_up) if "keyword" in run.plan.legs else []
    elif len(run.plan.legs) > 1:
        dense, keyword = _side_by_side(lambda: _all_nearest(run, embed()), look_up)
    elif "dense" in run.plan.legs:
        dense = _attempt(lambda: _all_nearest(run, embed()))
    else:
        keyword = _attempt(look_up)
    failures = {
        leg: failure for leg, failure in (("dense", dense), ("keyword", keyword)) if isinstance(failure, FootnoteError)
    }
    if len(failures) == len(run.plan.legs):
        raise _worst(failures)
    _tell_failures(run, failures)
    hits = [] if isinstance(keyword, FootnoteError) else keyword
    near = [] if isinstance(dense, FootnoteError) or "dense" not in run.plan.legs else dense
    lists = [
        LegList("dense", candidates, hits[place] if place < len(hits) else None)
        for place, candidates in enumerate(near)
    ]
    for place, each in enumerate(lists):
        run.trace.add("dense", each.candidates, query=place, fields=list(run.plan.fields))
    lists += [LegList("keyword", each.candidates, each) for each in hits]
    return Legs(tuple(lists), hits[0].term_weights if hits else {})


def _all_nearest(run: SearchRun, vectors: Vectors | None) -> list[Candidates]:
    """Return the candidates of each vector, a list of none where the collection has no vectors."""
    run.query_vectors = vectors
    return [NOTHING] if vectors is None else [_nearest(run, vector) for vector in vectors]


def _nearest(run: SearchRun, vector: Vector) -> Candidates:
    if run.inside is not None:
        return exactly_nearest(run, vector, run.inside)
    return nearest_admitted(run, vector) if run.restriction else find_by_vector(run, vector)


def _side_by_side(
    find_near: Callable[[], list[Candidates]], look_up: Callable[[], list[KeywordHits]]
) -> tuple[list[Candidates] | FootnoteError, list[KeywordHits] | FootnoteError]:
    """Look terms up beside the embedding of the queries and the search of their vectors, if a processor is idle."""
    future = processors.beside(look_up)
    if future is None:
        return _attempt(find_near), _attempt(look_up)
    try:
        dense = _attempt(find_near)
    finally:
        # Also after an error: no leg may still read a collection that its caller closes.
        keyword = _attempt(partial(processors.result, future))
    return dense, keyword


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
