"""The dense leg: embed the query, take the index's candidates, score them exactly from the store."""

import numpy as np

from app.domain import require_same_space
from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.inference.port import Embedder
from app.retrieval.fusion import ranked
from app.stores.port import Scope
from app.telemetry import StageTimer

OVERSAMPLING = 1.5
"""Quantised candidates per wanted hit: the true first hundred of real vectors stood in the first 150."""

SPARE = 20
"""More of them, since the first ten need not stand in the first fifteen."""

NOTHING = Candidates(keys=np.zeros(0, np.int64), scores=np.zeros(0, np.float32))


def find_by_vector(
    opened: OpenCollection,
    embedder: Embedder,
    query: str,
    limit: int,
    scope: Scope,
    timer: StageTimer,
) -> Candidates:
    """Return up to `limit` chunks of the scope by exact cosine with the query.

    Raises `EmbeddingModelMismatch` where the collection's vectors are of another space than the embedder's, and
    what the embedder raises.
    """
    stored = opened.store.embedding_space()
    if stored is None:
        return NOTHING
    require_same_space(stored, embedder.space)
    with timer.stage("embed"):
        vector = embedder.embed_queries([query])[0]
    with timer.stage("dense"):
        candidates = opened.index.dense.search(vector, int(OVERSAMPLING * limit) + SPARE, scope)
        exact = opened.store.similarities(vector, candidates.keys)
        keys = np.fromiter(exact.keys(), np.int64, len(exact))
        return ranked(keys, np.fromiter(exact.values(), np.float64, len(exact)), limit)
