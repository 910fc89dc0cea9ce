"""Search several collections as one: the models are asked once, each collection ranks its own, ranks are fused."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import merge

from app.domain import Notice, Passage
from app.errors import FootnoteError, Unavailable, UpstreamRejected
from app.retrieval.explained import ExplainedStage
from app.retrieval.facets import add_facets, cut_facets
from app.retrieval.limits import DEFAULT_LIMITS, Limits
from app.retrieval.run import SharedWork
from app.retrieval.search import SearchResult

K = 60
"""Of the fusion: Cormack, Clarke and Büttcher 2009."""


@dataclass(frozen=True, slots=True)
class Target:
    """One of the collections, and how to search it with what was done for those before."""

    name: str
    search: Callable[[SharedWork], SearchResult]


def search_several(targets: Sequence[Target], top_k: int, limits: Limits = DEFAULT_LIMITS) -> SearchResult:
    """Return the best passages of all collections; one that does not answer is named in `degraded`.

    The query is transformed once, and embedded once by each model. Raises the first collection's error where none
    answers.
    """
    shared = SharedWork()
    results: dict[str, SearchResult] = {}
    failures: dict[str, FootnoteError] = {}
    for target in targets:
        try:
            results[target.name] = target.search(shared)
        except (Unavailable, UpstreamRejected) as failure:
            failures[target.name] = failure
    if failures and not results:
        raise next(iter(failures.values()))
    return _together(results, failures, top_k, limits)


def _together(
    results: dict[str, SearchResult], failures: dict[str, FootnoteError], top_k: int, limits: Limits
) -> SearchResult:
    first = next(iter(results.values()))
    warnings = [
        Notice(notice.code, notice.detail, {**notice.extra, "collection": name})
        for name, result in results.items()
        for notice in result.warnings
    ]
    warnings += [
        Notice(failure.code, f"the collection {name} did not answer: {failure.detail}", {"collection": name})
        for name, failure in failures.items()
    ]
    facets = add_facets(result.facets for result in results.values())
    facets = cut_facets(facets, limits.facet_values, warnings)
    degraded = [*failures, *(step for result in results.values() for step in result.degraded)]
    stages = {stage for result in results.values() for stage in result.timings_ms}
    return SearchResult(
        passages=_fused(results, top_k),
        queries_used=first.queries_used,
        mode=first.mode,
        degraded=tuple(dict.fromkeys(degraded)),
        warnings=tuple(warnings),
        timings_ms={
            stage: math.fsum(result.timings_ms.get(stage, 0.0) for result in results.values())
            for stage in sorted(stages)
        },
        facets=facets,
        trace=None if first.trace is None else _stages(results),
    )


def _stages(results: dict[str, SearchResult]) -> tuple[ExplainedStage, ...]:
    """Return the stages of every collection, one collection after another."""
    return tuple(replace(stage, collection=name) for name, result in results.items() for stage in result.trace or ())


def _fused(results: dict[str, SearchResult], top_k: int) -> tuple[Passage, ...]:
    """Return the passages in one order.

    Scores of one reranker may be compared between collections, each of which keeps its own order; anything else is
    fused by rank, and hits of one rank stand by their cosine, if the dense leg found them.
    """
    found = [result for result in results.values() if result.passages]
    rerankers = {result.reranker for result in found}
    if len(rerankers) == 1 and None not in rerankers:
        order = list(merge(*(result.passages for result in found), key=lambda passage: -passage.score))
    else:
        passages = [
            replace(passage, score=1 / (K + passage.rank), fused=1 / (K + passage.rank), score_type="rrf")
            for result in found
            for passage in result.passages
        ]
        order = sorted(passages, key=lambda passage: (passage.rank, -_cosine(passage), passage.collection))
    return tuple(replace(passage, rank=rank) for rank, passage in enumerate(order[:top_k], start=1))


def _cosine(passage: Passage) -> float:
    return passage.legs["dense"].score if "dense" in passage.legs else -1.0
