"""Search a collection that may move to another embedding model at any moment: never in two spaces at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from app.embedding_space import EmbeddingSpace
from app.errors import Reembedded
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
        return search(opened, models, collection_name, plan, shared)
    for _ in range(_ATTEMPTS):
        space = opened.index.space
        try:
            result = search(opened, replace(models, embedder=embedder_of(space)), collection_name, plan, shared)
        except Exception:
            # Whatever went wrong between two spaces is no failure of the search.
            if opened.store.embedding_space() == space:
                raise
            opened.fresh()
        else:
            if opened.store.embedding_space() == space:
                return result
    raise Reembedded("the collection moved to other embedding models during the search", hint="search again")
