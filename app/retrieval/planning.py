"""Make the plan of a search, checked before any work: every wrong value is named at once."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from app.errors import FieldError, InvalidRequest
from app.filters import And, Filter
from app.retrieval.limits import Limits
from app.retrieval.plan import (
    DEFAULT_CANDIDATES,
    ExpandOptions,
    Fusion,
    LegWeights,
    RankFusion,
    SearchPlan,
)
from app.settings import Settings
from app.stores.filters import RESERVED_FIELDS

MAX_LEG_WEIGHT = 1000.0

_MAX_QUERIES = "FOOTNOTE_MAX_QUERIES"

_Wrong: TypeAlias = Iterator[tuple[str, str, str]]
"""A pointer below the options, a code and a sentence."""


def build_plan(
    query: str,
    settings: Settings,
    *,
    candidates: int | None = None,
    search_filter: Filter | None = None,
    forced_filter: Filter | None = None,
    document_ids: Sequence[str] | None = None,
    queries: Sequence[str] = (),
    query_pointer: str = "/query",
    options_pointer: str = "",
    **options: Any,
) -> SearchPlan:
    """Return the plan of a search; raise `InvalidRequest` that names every wrong value at once.

    `candidates` is 100 unless given, or as many as `top_k` and the reranker want. `forced_filter` comes from the key
    and narrows whatever the caller asks. `options` are further members of `SearchPlan`. The pointers say where query
    and options stand in the caller's body.
    """
    plan = SearchPlan(
        query=clean_query(query),
        filter=_both(forced_filter, search_filter),
        is_narrowed=forced_filter is not None,
        document_ids=None if document_ids is None else tuple(document_ids),
        queries=tuple(map(clean_query, queries)),
        limits=Limits.of(settings),
        **options,
    )
    wanted = max(DEFAULT_CANDIDATES, plan.top_k, plan.rerank.candidates if plan.rerank else 0)
    plan = replace(plan, candidates=min(wanted, settings.max_candidates) if candidates is None else candidates)
    errors = [
        *query_errors(plan.query, settings, query_pointer),
        *(
            error
            for place, more in enumerate(plan.queries)
            for error in query_errors(more, settings, f"{options_pointer}/queries/{place}")
        ),
        *(FieldError(f"{options_pointer}/{name}", code, detail) for name, code, detail in _wrong(plan, settings)),
    ]
    if errors:
        raise InvalidRequest(errors[0].detail, errors=errors)
    return plan


def clean_query(query: str) -> str:
    """Return the query without NUL, lone surrogates and outer white space, which no index or model can take."""
    return query.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8").strip()


def query_errors(query: str, settings: Settings, pointer: str) -> list[FieldError]:
    """Return what is wrong with the length of a cleaned query or question."""
    if not query:
        return [FieldError(pointer, "empty", f"{pointer[1:]} holds no text; give at least one word")]
    if len(query) > settings.max_query_characters:
        detail = (
            f"{len(query)} characters are above the maximum of {settings.max_query_characters} "
            "(FOOTNOTE_MAX_QUERY_CHARACTERS)"
        )
        return [FieldError(pointer, "too_long", detail)]
    return []


def _both(forced: Filter | None, asked: Filter | None) -> Filter | None:
    if forced is None or asked is None:
        return forced or asked
    return And((forced, asked))


def _wrong(plan: SearchPlan, settings: Settings) -> _Wrong:
    yield from _size_errors(plan, settings)
    yield from _fusion_errors(plan.fusion)
    yield from _query_errors(plan, settings)
    yield from _rerank_errors(plan, settings)
    yield from _score_errors(plan)
    yield from _shape_errors(plan)
    yield from _expansion_errors(plan.expand, settings)


def _size_errors(plan: SearchPlan, settings: Settings) -> _Wrong:
    for name, value, maximum in (
        ("top_k", plan.top_k, settings.max_top_k),
        ("candidates", plan.candidates, settings.max_candidates),
    ):
        if not 1 <= value <= maximum:
            yield name, "out_of_range", f"{name} {value} must be from 1 to {maximum} (FOOTNOTE_MAX_{name.upper()})"
    if plan.candidates < plan.top_k:
        yield "candidates", "too_small", f"candidates {plan.candidates} must be at least top_k {plan.top_k}"


def _fusion_errors(fusion: Fusion) -> _Wrong:
    if isinstance(fusion, RankFusion):
        if not 0 <= fusion.k < math.inf:
            yield "fusion/k", "out_of_range", f"k {fusion.k} must be a number from 0"
        if isinstance(fusion.weights, LegWeights):
            yield from _weight_errors(fusion.weights)
    elif fusion.alpha != "auto" and not 0 <= fusion.alpha <= 1:
        yield "fusion/alpha", "out_of_range", f"alpha {fusion.alpha} must be from 0 to 1, or auto"


def _weight_errors(weights: LegWeights) -> _Wrong:
    for name, value in (("dense", weights.dense), ("keyword", weights.keyword)):
        if not 0 <= value <= MAX_LEG_WEIGHT:
            yield f"fusion/weights/{name}", "out_of_range", f"weight {value} must be from 0 to {MAX_LEG_WEIGHT:g}"
    if weights.dense == 0 and weights.keyword == 0:
        yield "fusion/weights", "both_zero", "the weights of dense and keyword are both 0; one leg must count"


def _query_errors(plan: SearchPlan, settings: Settings) -> _Wrong:
    most = settings.max_queries
    if len(plan.queries) >= most:
        yield "queries", "too_many", f"{len(plan.queries) + 1} queries are above the maximum of {most} ({_MAX_QUERIES})"
    if not 0 <= plan.transform.multi_query < most:
        detail = f"multi_query {plan.transform.multi_query} must be from 0 to {most - 1} ({_MAX_QUERIES} less one)"
        yield "transform/multi_query", "out_of_range", detail


def _rerank_errors(plan: SearchPlan, settings: Settings) -> _Wrong:
    options = plan.rerank
    if options is None:
        return
    if options.candidates > plan.candidates:
        detail = (
            f"rerank.candidates {options.candidates} must be at most candidates {plan.candidates}, "
            f"which may be {settings.max_candidates} (FOOTNOTE_MAX_CANDIDATES)"
        )
        yield "rerank/candidates", "too_large", detail
    if options.candidates < plan.top_k:
        detail = f"rerank.candidates {options.candidates} must be at least top_k {plan.top_k}"
        yield "rerank/candidates", "too_small", detail
    most = settings.search_timeout_seconds
    if options.timeout_seconds is not None and not 0 < options.timeout_seconds <= most:
        detail = (
            f"timeout_seconds {options.timeout_seconds} must be above 0 and at most {most:g} "
            "(FOOTNOTE_SEARCH_TIMEOUT_SECONDS)"
        )
        yield "rerank/timeout_seconds", "out_of_range", detail


def _score_errors(plan: SearchPlan) -> _Wrong:
    on = plan.min_score_on
    if on is not None and plan.min_score is None:
        yield "min_score_on", "incomplete", "min_score_on says nothing without min_score"
    elif on is not None and on not in plan.legs:
        yield "min_score_on", "no_such_leg", f"this search has no {on} leg; its legs are {', '.join(plan.legs)}"
    elif plan.min_score is not None and on is None and plan.mode == "hybrid" and plan.rerank is None:
        detail = "a fused score has no absolute meaning: add min_score_on (dense or keyword), or a reranker"
        yield "min_score", "needs_score", detail


def _shape_errors(plan: SearchPlan) -> _Wrong:
    if plan.diversity is not None and not 0 <= plan.diversity.relevance <= 1:
        yield "diversity/lambda", "out_of_range", f"lambda {plan.diversity.relevance} must be from 0 to 1"
    near = None if plan.diversity is None else plan.diversity.near_duplicates
    if near is not None and not 0 < near <= 1:
        yield "diversity/near_duplicates", "out_of_range", f"near_duplicates {near} must be above 0 and at most 1"
    if plan.max_per_document is not None and plan.max_per_document < 1:
        yield "max_per_document", "out_of_range", f"max_per_document {plan.max_per_document} must be at least 1"
    for place, name in enumerate(plan.facets):
        if name in RESERVED_FIELDS:
            yield f"facets/{place}", "no_metadata", f"{name!r} is no metadata field; values of those alone are counted"


def _expansion_errors(expand: ExpandOptions, settings: Settings) -> _Wrong:
    most = settings.max_expand_characters
    if not 1 <= expand.max_characters <= most:
        detail = f"max_characters {expand.max_characters} must be from 1 to {most} (FOOTNOTE_MAX_EXPAND_CHARACTERS)"
        yield "expand/max_characters", "out_of_range", detail
    most = settings.max_neighbours
    if not 0 <= expand.neighbours <= most:
        detail = f"neighbours {expand.neighbours} must be from 0 to {most} (FOOTNOTE_MAX_NEIGHBOURS)"
        yield "expand/neighbours", "out_of_range", f"{detail}; `section` and `document` give more"
