"""Answer a query with passages: scope, both legs side by side, fusion, hydration. The room's story, top to bottom."""

import contextvars
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from app.domain import LegScore, Notice, Passage
from app.errors import EmbeddingUnavailable, FootnoteError, Unavailable, UpstreamRejected
from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.inference.port import Embedder
from app.retrieval.dense import Vector, find_by_vector, query_vector
from app.retrieval.fusion import (
    automatic_alpha,
    automatic_keyword_weight,
    reciprocal_rank_fusion,
    weighted_score_fusion,
)
from app.retrieval.keyword import KeywordHits, find_by_terms
from app.retrieval.plan import LegWeights, RankFusion, SearchPlan, fixed_weights
from app.stores.port import CollectionStore, FoundChunk, Scope
from app.telemetry import StageTimer, counters

Hits = TypeVar("Hits")

_beside = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="keyword-leg")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `degraded` names the legs that did not answer.

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


@dataclass(frozen=True, slots=True)
class _Legs:
    hits: Mapping[str, Candidates]
    keyword: KeywordHits | None
    failures: Mapping[str, FootnoteError]


def search(opened: OpenCollection, embedder: Embedder | None, collection_name: str, plan: SearchPlan) -> SearchResult:
    """Return the passages that answer the plan's query, best first; keywords alone need no embedder.

    A leg that does not answer is named in `degraded` while the other one answers. Raises `EmbeddingModelMismatch`
    for a collection of another embedding space, and the legs' own error (502, 503) where none answers.
    """
    counters.add("searches")
    timer = StageTimer()
    opened.fresh(frozenset(plan.fields))
    scope = opened.store.scope(plan.filter, plan.document_ids)
    legs = _fetch(opened, embedder, plan, scope, timer)
    with timer.stage("fuse"):
        ranking, score_type = _rank(plan, legs)
    with timer.stage("hydrate"):
        found = _hydrate(opened.store, ranking, plan.top_k)
        passages = _passages(found, collection_name, ranking, score_type, legs)
    return SearchResult(
        passages=passages,
        queries_used=(plan.query,),
        mode=plan.mode,
        degraded=tuple(legs.failures),
        warnings=(*scope.warnings, *_warnings(plan, legs)),
        timings_ms=timer.milliseconds(),
        term_weights=legs.keyword.term_weights if legs.keyword else {},
    )


def _fetch(
    opened: OpenCollection, embedder: Embedder | None, plan: SearchPlan, scope: Scope, timer: StageTimer
) -> _Legs:
    def embed() -> Vector | None:
        if embedder is None:
            raise EmbeddingUnavailable("this search was given no embedding model")
        return query_vector(opened, embedder, plan.query, timer)

    by_terms = partial(find_by_terms, opened, plan.query, plan.candidates, scope, timer)
    vector: Vector | FootnoteError | None = None
    keyword: KeywordHits | FootnoteError | None = None
    if len(plan.legs) > 1:
        vector, keyword = _side_by_side(embed, by_terms)
    elif "dense" in plan.legs:
        vector = _attempt(embed)
    else:
        keyword = _attempt(by_terms)
    hits: dict[str, Candidates] = {}
    failures: dict[str, FootnoteError] = {}
    if isinstance(vector, FootnoteError):
        failures["dense"] = vector
    elif "dense" in plan.legs:
        hits["dense"] = find_by_vector(opened, vector, plan.candidates, scope, timer, plan.fields)
    if isinstance(keyword, FootnoteError):
        failures["keyword"] = keyword
    elif keyword is not None:
        hits["keyword"] = keyword.candidates
    if not hits:
        raise _worst(failures)
    return _Legs(hits, keyword if isinstance(keyword, KeywordHits) else None, failures)


def _side_by_side(
    embed: Callable[[], Vector | None], by_terms: Callable[[], KeywordHits]
) -> tuple[Vector | FootnoteError | None, KeywordHits | FootnoteError]:
    """Look terms up while the query is embedded. The vectors are searched after both, on every processor."""
    future = _beside.submit(contextvars.copy_context().run, by_terms)
    try:
        vector = _attempt(embed)
    finally:
        # Also after an error: no leg may still read a collection that its caller closes. A call that still waits for
        # a thread is done here instead, so that a full pool delays nobody.
        keyword = _attempt(by_terms if future.cancel() else future.result)
    return vector, keyword


def _attempt(find: Callable[[], Hits]) -> Hits | FootnoteError:
    try:
        return find()
    except (Unavailable, UpstreamRejected) as failure:
        return failure


def _worst(failures: Mapping[str, FootnoteError]) -> FootnoteError:
    return next((error for error in failures.values() if isinstance(error, Unavailable)), next(iter(failures.values())))


def _rank(plan: SearchPlan, legs: _Legs) -> tuple[Candidates, str]:
    if plan.mode != "hybrid":
        return legs.hits[plan.mode], "dense" if plan.mode == "dense" else "bm25"
    weights = _weights(plan, legs)
    by_leg = [getattr(weights, name) for name in legs.hits]
    if isinstance(plan.fusion, RankFusion):
        return reciprocal_rank_fusion(list(legs.hits.values()), by_leg, plan.fusion.k), "rrf"
    return weighted_score_fusion(list(legs.hits.values()), by_leg), "weighted"


def _weights(plan: SearchPlan, legs: _Legs) -> LegWeights:
    if len(legs.hits) == 1 or legs.keyword is None:
        return LegWeights()
    fixed = fixed_weights(plan.fusion)
    if fixed is not None:
        return fixed
    if isinstance(plan.fusion, RankFusion):
        return LegWeights(keyword=automatic_keyword_weight(legs.keyword.coverage, legs.keyword.known))
    alpha = automatic_alpha(legs.keyword.coverage)
    return LegWeights(dense=alpha, keyword=1 - alpha)


def _hydrate(store: CollectionStore, ranking: Candidates, wanted: int) -> list[FoundChunk]:
    found: list[FoundChunk] = []
    position = 0
    # A chunk that was deleted after its leg found it gives its place to the next one.
    while len(found) < wanted and position < len(ranking.keys):
        batch = ranking.keys[position : position + wanted - len(found)].tolist()
        position += len(batch)
        found += store.found_chunks(batch)
    return found


def _passages(
    found: list[FoundChunk], collection_name: str, ranking: Candidates, score_type: str, legs: _Legs
) -> tuple[Passage, ...]:
    keys = [chunk.chunk_key for chunk in found]
    scores = _scores_of(keys, ranking)
    leg_scores = {name: _scores_of(keys, hits) for name, hits in legs.hits.items()}
    return tuple(
        Passage(
            rank=rank,
            chunk_id=chunk.chunk_id,
            document_id=chunk.document_id,
            collection=collection_name,
            title=chunk.title,
            text=chunk.text,
            start=chunk.start,
            end=chunk.end,
            page_start=chunk.page_start,
            page_end=chunk.page_end,
            heading_path=chunk.heading_path,
            score=scores[chunk.chunk_key].score,
            score_type=score_type,
            legs={name: by_key[chunk.chunk_key] for name, by_key in leg_scores.items() if chunk.chunk_key in by_key},
            fused=None if score_type in ("dense", "bm25") else scores[chunk.chunk_key].score,
            metadata=chunk.metadata,
        )
        for rank, chunk in enumerate(found, start=1)
    )


def _scores_of(keys: list[int], candidates: Candidates) -> dict[int, LegScore]:
    wanted = set(keys)
    return {
        key: LegScore(float(candidates.scores[position]), position + 1)
        for position, key in enumerate(candidates.keys.tolist())
        if key in wanted
    }


def _warnings(plan: SearchPlan, legs: _Legs) -> list[Notice]:
    warnings = [
        Notice(error.code, f"the {name} leg did not answer: {error.detail}", {"leg": name})
        for name, error in legs.failures.items()
    ]
    if legs.keyword and not legs.keyword.term_weights:
        detail = f"{plan.query[:80]!r} holds no word or number to look up, so keywords find nothing"
        warnings.append(Notice("no_query_terms", detail))
    return warnings
