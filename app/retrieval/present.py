"""Search a collection that may move to another embedding model at any moment: never in two spaces at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from app.embedding_space import EmbeddingSpace
from app.errors import EmbeddingModelMismatch, Reembedded
from app.indexes.opening import OpenCollection
from app.inference.port import Embedder
from app.retrieval.plan import SearchPlan
from app.retrieval.run import Models, SharedWork
from app.retrieval.search import SearchResult, search

EmbedderOf: TypeAlias = Callable[[EmbeddingSpace | None], Embedder]
"""Return the embedder of a space, that of the collection's model for `None`; raise `EmbeddingModelMismatch`."""

_ATTEMPTS = 3


def search_present(
    opened: OpenCollection,
    embedder_of: EmbedderOf,
    models: Models,
    collection_name: str,
    plan: SearchPlan,
    shared: SharedWork | None = None,
) -> SearchResult:
    """Search by the embedder of the vectors that there are, again where they became another model's meanwhile.

    The embedder takes its place in `models`.
    """
    if not plan.needs_embedder:
        # A collection whose model is not configured here still answers by keywords.
        return _told(plan, search(opened, models, collection_name, plan, shared))
    for _ in range(_ATTEMPTS):
        space = opened.index.space
        try:
            present = replace(models, embedder=_embedder(embedder_of, space, plan))
            result = search(opened, present, collection_name, plan, shared)
        except Exception:
            # Whatever went wrong between two spaces is no failure of the search.
            if opened.store.embedding_space() == space:
                raise
            opened.fresh()
        else:
            if opened.store.embedding_space() == space:
                return _told(plan, result)
    raise Reembedded("the collection moved to other embedding models during the search", hint="search again")


def _embedder(embedder_of: EmbedderOf, space: EmbeddingSpace | None, plan: SearchPlan) -> Embedder | None:
    """Return the embedder of the space, `None` where only an optional reranker would ask one that is not there."""
    try:
        return embedder_of(space)
    except EmbeddingModelMismatch:
        if "dense" in plan.legs or not plan.is_rerank_optional:
            raise
        return None


def _told(plan: SearchPlan, result: SearchResult) -> SearchResult:
    return replace(result, warnings=(*plan.notices, *result.warnings)) if plan.notices else result
