"""Answer a query with passages. The room's story, top to bottom: one call for each step of a search."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain import Notice, Passage
from app.indexes.opening import OpenCollection
from app.retrieval.diversity import diversify
from app.retrieval.fuse import fuse
from app.retrieval.legs import Legs, fetch_legs
from app.retrieval.passages import first_chunks, make_passages
from app.retrieval.plan import SearchPlan
from app.retrieval.query_transforms import transform_queries
from app.retrieval.reranking import rerank
from app.retrieval.run import Models, SearchRun
from app.retrieval.trace import Trace
from app.telemetry import StageTimer, counters


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `degraded` names the legs and steps that did not answer.

    `term_weights` holds each distinct term of the query with its inverse document frequency in the collection;
    it is empty where the keyword leg did not run.
    """

    passages: tuple[Passage, ...]
    queries_used: tuple[str, ...]
    mode: str
    degraded: tuple[str, ...] = ()
    warnings: tuple[Notice, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    term_weights: Mapping[str, float] = field(default_factory=dict)


def search(opened: OpenCollection, models: Models, collection_name: str, plan: SearchPlan) -> SearchResult:
    """Return the passages that answer the plan's query, best first; keywords alone need no model.

    What does not answer is named in `degraded` while something else does. Raises `EmbeddingModelMismatch` for a
    collection of another embedding space, and the legs' own error (502, 503) where none answers.
    """
    counters.add("searches")
    timer = StageTimer()
    opened.fresh(frozenset(plan.fields))
    scope = opened.store.scope(plan.filter, plan.document_ids)
    run = SearchRun(opened, models, plan, scope, timer, Trace(plan.explain), list(scope.warnings))
    queries = transform_queries(run)
    legs = fetch_legs(run, queries)
    with timer.stage("fuse"):
        fused = fuse(plan, legs)
    ranking = rerank(run, fused, legs)
    ranking = diversify(run, ranking)
    with timer.stage("hydrate"):
        passages = make_passages(first_chunks(run, ranking), collection_name, ranking, fused, legs)
    _warn_of_no_terms(run, legs)
    return SearchResult(
        passages=passages,
        queries_used=queries.texts,
        mode=plan.mode,
        degraded=tuple(run.degraded),
        warnings=tuple(run.warnings),
        timings_ms=timer.milliseconds(),
        term_weights=legs.term_weights,
    )


def _warn_of_no_terms(run: SearchRun, legs: Legs) -> None:
    if any(each.leg == "keyword" for each in legs.lists) and not legs.term_weights:
        detail = f"{run.plan.query[:80]!r} holds no word or number to look up, so keywords find nothing"
        run.warn("no_query_terms", detail)
