"""Answer a query with passages. The room's story, top to bottom: one call for each step of a search."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain import Notice, Passage
from app.indexes.opening import OpenCollection
from app.processors import processors
from app.retrieval.arrange import arrange
from app.retrieval.cursor import PageStart, decode_cursor, encode_cursor, listed, only_visible
from app.retrieval.diversity import diversify
from app.retrieval.explained import ExplainedStage, explained
from app.retrieval.facets import Facets, count_facets
from app.retrieval.fuse import fuse, list_weights
from app.retrieval.legs import Legs, fetch_legs
from app.retrieval.passages import make_passages
from app.retrieval.plan import SearchPlan
from app.retrieval.query_syntax import MOST_CONDITIONS, TypedQuery, read_query, without_guesses
from app.retrieval.query_terms import restriction_of
from app.retrieval.query_transforms import transform_queries
from app.retrieval.reranking import rerank
from app.retrieval.run import Models, SearchQueries, SearchRun, SharedWork
from app.retrieval.scored import Scored, with_scores
from app.retrieval.thresholds import above_minimum
from app.retrieval.trace import Trace
from app.telemetry import StageTimer, counters


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `degraded` names the legs and steps that did not answer.

    `term_weights` holds each distinct term of the query with its inverse document frequency in the collection;
    it is empty where the keyword leg did not run. `trace` is there for a plan that asks to `explain`. Scores of results
    of the same `reranker` may be compared.
    """

    passages: tuple[Passage, ...]
    queries_used: tuple[str, ...]
    mode: str
    degraded: tuple[str, ...] = ()
    warnings: tuple[Notice, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    term_weights: Mapping[str, float] = field(default_factory=dict)
    facets: Facets = field(default_factory=dict)
    next_cursor: str | None = None
    trace: tuple[ExplainedStage, ...] | None = None
    reranker: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """Every hit in its order, and where in it the page begins."""

    scored: Scored
    start: PageStart
    queries: SearchQueries
    term_weights: Mapping[str, float]


@processors.held()
def search(
    opened: OpenCollection, models: Models, collection_name: str, plan: SearchPlan, shared: SharedWork | None = None
) -> SearchResult:
    """Return the passages that answer the plan's query, best first; keywords alone need no model.

    What `shared` holds was done for another collection of the same request, and is not done again.
    What does not answer is named in `degraded` while something else does. Raises `EmbeddingModelMismatch` for a
    collection of another embedding space, the legs' own error (502, 503) where none answers, and `InvalidCursor`.
    """
    counters.add("searches")
    timer = StageTimer()
    opened.fresh(frozenset(plan.fields))
    asked, typed = read_query(plan)
    scope = opened.store.scope(opened.store.without_ended(asked.filter, plan.max_age), asked.document_ids)
    warnings = [] if plan.is_narrowed else without_guesses(scope.warnings, typed)
    restriction = restriction_of(typed, opened)
    run = SearchRun(
        opened, models, asked, scope, timer, Trace(plan.explain), warnings, shared=shared, restriction=restriction
    )
    _warn_of_conditions(run, typed)
    run.trace.add("scope", documents=None if scope.document_keys is None else len(scope.document_keys))
    found = _find(run) if plan.cursor is None else _continue(run, collection_name)
    with timer.stage("hydrate"):
        hits, following = arrange(run, found.scored.ranking, found.start.place)
        passages = make_passages(run, collection_name, hits, found.scored, found.start.given + 1)
    facets = count_facets(run, found.scored.ranking)
    return SearchResult(
        passages=passages,
        queries_used=found.queries.texts,
        mode=plan.mode,
        degraded=tuple(run.degraded),
        facets=facets,
        warnings=tuple(run.warnings),
        timings_ms=timer.milliseconds(),
        term_weights=found.term_weights,
        next_cursor=None if following is None else _cursor(run, collection_name, found, len(hits), following),
        trace=explained(run) if plan.explain else None,
        reranker=found.scored.ranking.reranker,
    )


def _find(run: SearchRun) -> _Found:
    _warn_of_missing_fields(run)
    queries = transform_queries(run)
    legs = fetch_legs(run, queries)
    with run.timer.stage("fuse"):
        fused = fuse(run.plan, legs)
        weighed = zip(legs.lists, list_weights(run.plan, legs), strict=True)
        weights = [{"leg": each.leg, "weight": weight} for each, weight in weighed]
        run.trace.add("fuse", fused.candidates, method=fused.score_type, weights=weights)
    ranking = rerank(run, fused, legs, queries.texts[0])
    ranking = above_minimum(run, ranking, legs)
    ranking = diversify(run, listed(run, ranking))
    _warn_of_no_terms(run, legs)
    return _Found(with_scores(ranking, fused, legs), PageStart(), queries, legs.term_weights)


def _continue(run: SearchRun, collection_name: str) -> _Found:
    """Return the ranking that the first page made: nothing is searched again."""
    scored, start = decode_cursor(run, collection_name)
    queries = SearchQueries((run.plan.query, *run.plan.queries))
    return _Found(only_visible(run, scored), start, queries, {})


def _cursor(run: SearchRun, collection_name: str, found: _Found, given: int, following: int) -> str:
    start = PageStart(following, found.start.given + given)
    return encode_cursor(run, collection_name, found.scored, start)


def _warn_of_conditions(run: SearchRun, typed: TypedQuery) -> None:
    if typed.only_excludes and "dense" not in run.plan.legs:
        run.warn("no_query_terms", "the query says only what is not wanted, and keywords find what holds its words")
    if typed.unread:
        detail = (
            f"the first {MOST_CONDITIONS} phrases, exclusions and fields are read; {typed.unread} more count as text"
        )
        run.warn("conditions_cut", detail, limit=MOST_CONDITIONS, unread=typed.unread)


def _warn_of_missing_fields(run: SearchRun) -> None:
    for missing in sorted({*run.plan.fields} - {"context", *run.opened.index.fields}):
        detail = (
            f"this collection has no vectors of the field {missing}; it gets them where it has "
            '"indexing": "enhanced" and its documents are sent, again too'
        )
        run.warn(f"no_{missing}_vectors", detail)


def _warn_of_no_terms(run: SearchRun, legs: Legs) -> None:
    if any(each.leg == "keyword" for each in legs.lists) and not legs.term_weights:
        detail = f"{run.plan.query[:80]!r} holds no word or number to look up, so keywords find nothing"
        run.warn("no_query_terms", detail)
