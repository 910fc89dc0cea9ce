"""The dense leg: embed the query, take the index's candidates, score them exactly from the store."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.domain import require_same_space
from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.inference.port import Embedder
from app.retrieval.fusion import ranked
from app.stores.port import Scope
from app.telemetry import StageTimer

Vector: TypeAlias = NDArray[np.float32]

OVERSAMPLING = 1.2
"""Quantised candidates per wanted hit: the true first hundred of 300 questions all stood in the first 120."""

SPARE = 20
"""More of them: the true first ten stood in the first 14."""

NOTHING = Candidates(keys=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))


def query_vector(opened: OpenCollection, embedder: Embedder, query: str, timer: StageTimer) -> Vector | None:
    """Return the query's vector in the collection's space, `None` while the collection has no vectors.

    Raises `EmbeddingModelMismatch` where the collection's vectors are of another space than the embedder's, and
    what the embedder raises.
    """
    with timer.stage("embed"):
        stored = opened.store.embedding_space()
        if stored is None:
            return None
        require_same_space(stored, embedder.space)
        vector: Vector = embedder.embed_queries([query])[0]
        return vector


def find_by_vector(
    opened: OpenCollection, vector: Vector | None, limit: int, scope: Scope, timer: StageTimer
) -> Candidates:
    """Return up to `limit` chunks of the scope by exact cosine with the query's vector."""
    if vector is None:
        return NOTHING
    with timer.stage("dense"):
        candidates = opened.index.dense.search(vector, int(OVERSAMPLING * limit) + SPARE, scope)
        exact = opened.store.similarities(vector, candidates.keys)
        keys = np.fromiter(exact.keys(), np.int64, len(exact))
        return ranked(keys, np.fromiter(exact.values(), np.float64, len(exact)), limit)
