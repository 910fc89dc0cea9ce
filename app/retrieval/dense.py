"""The dense leg: embed the query, take the index's candidates, score them exactly from the store."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import require_same_space
from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.inference.embedding_cache import token_embedder
from app.inference.port import Embedder
from app.retrieval.fusion import ranked
from app.retrieval.run import SearchQueries, SearchRun
from app.stores.port import CollectionStore, Keys, Scope, VectorField

Vector: TypeAlias = NDArray[np.float32]
"""float32, shape (dimensions,), unit length."""

Vectors: TypeAlias = NDArray[np.float32]
"""float32, shape (texts, dimensions), rows of unit length."""

OVERSAMPLING = 1.1
"""Quantised candidates per wanted hit: more than that changed 1 of 1,000 of the true first hundred."""

SPARE = 10
"""More of them: the true first ten stood in the first 14."""

NOTHING = Candidates(keys=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))


def query_vectors(run: SearchRun, embedder: Embedder, queries: SearchQueries) -> Vectors | None:
    """Return the vectors of the queries and then of hypothetical passages, `None` while the collection has no vectors.

    All queries are one batch. Raises `EmbeddingModelMismatch` where the collection's vectors are of another space
    than the embedder's, and what the embedder raises.
    """
    with run.timer.stage("embed"):
        present = run.opened.index.space
        if present is None:
            return None
        require_same_space(present, embedder.space)
        _warn_of_cut(run, embedder, queries.texts)
        if run.shared is None:
            return _embedded(embedder, queries)
        wanted = (embedder.space, queries)
        if wanted not in run.shared.vectors:
            run.shared.vectors[wanted] = _embedded(embedder, queries)
        return run.shared.vectors[wanted]


def _warn_of_cut(run: SearchRun, embedder: Embedder, texts: Sequence[str]) -> None:
    window = embedder.window_tokens
    # Hardly any text has a token for every second character, and most queries need no count.
    long = [text for text in texts if 2 * len(text) > window]
    counting = token_embedder(embedder)
    if counting is not None and any(counting.count_tokens(text) > window for text in long):
        detail = f"the embedding model reads {window} tokens at once, of a longer query its beginning alone"
        run.warn("query_embedded_in_part", detail, window_tokens=window)


def _embedded(embedder: Embedder, queries: SearchQueries) -> Vectors:
    vectors: Vectors = embedder.embed_queries(queries.texts)
    if queries.hypothetical:
        vectors = np.concatenate((vectors, embedder.embed_passages(queries.hypothetical)))
    return vectors


def find_by_vector(run: SearchRun, vector: Vector, limit: int | None = None) -> Candidates:
    """Return the scope's first chunks by exact cosine with a query's vector, the greatest of the plan's fields.

    A parent gives its score to the child that is nearest to the query.
    """
    limit = run.plan.candidates if limit is None else limit
    with run.timer.stage("dense"):
        found = [_nearest(run.opened, vector, limit, run.scope, field) for field in run.plan.fields]
        scores = found[0]
        for others in found[1:]:
            scores = scores | {key: max(score, scores.get(key, score)) for key, score in others.items()}
        keys = np.fromiter(scores.keys(), np.int64, len(scores))
        return ranked(keys, np.fromiter(scores.values(), np.float64, len(scores)), limit)


def exact_cosines(run: SearchRun, vector: Vector, keys: Keys) -> dict[int, float]:
    """Return each chunk's exact cosine with a query's vector, the greatest of the plan's fields, without any index.

    A chunk that has no vector in any of them is absent. In the field `parent` it has that of its parent.
    """
    best: dict[int, float] = {}
    for field in run.plan.fields:
        for key, score in _cosines_in(run.opened.store, vector, keys, field).items():
            best[key] = max(score, best.get(key, score))
    return best


def exactly_nearest(run: SearchRun, vector: Vector, keys: Keys) -> Candidates:
    """Return the first of these chunks by their exact cosine."""
    with run.timer.stage("dense"):
        best = exact_cosines(run, vector, keys)
        found = np.fromiter(best.keys(), np.int64, len(best))
        return ranked(found, np.fromiter(best.values(), np.float64, len(best)), run.plan.candidates)


def _cosines_in(store: CollectionStore, vector: Vector, keys: Keys, field: VectorField) -> dict[int, float]:
    if field != "parent":
        return store.similarities(vector, keys, field)
    parents = {key: parent.chunk_key for key, parent in store.parents_of(keys.tolist()).items()}
    scores = store.similarities(vector, np.array(sorted(set(parents.values())), np.int64), "parent")
    return {key: scores[parent] for key, parent in parents.items() if parent in scores}


def _nearest(opened: OpenCollection, vector: Vector, limit: int, scope: Scope, field: VectorField) -> dict[int, float]:
    index = opened.index.of_field(field)
    if index is None:
        return {}
    candidates = index.search(vector, int(OVERSAMPLING * limit) + SPARE, scope)
    scores = opened.store.similarities(vector, candidates.keys, field)
    return _of_children(opened.store, vector, scores) if field == "parent" else scores


def _of_children(store: CollectionStore, vector: Vector, parent_scores: dict[int, float]) -> dict[int, float]:
    children = store.children_of(list(parent_scores))
    keys = np.array([key for inside in children.values() for key in inside], np.int64)
    scores = store.similarities(vector, keys)
    # A child may have been deleted since its parent was read.
    present = {parent: [key for key in inside if key in scores] for parent, inside in children.items()}
    return {max(inside, key=scores.__getitem__): parent_scores[parent] for parent, inside in present.items() if inside}
