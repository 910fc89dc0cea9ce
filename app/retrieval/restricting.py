"""Keep what a query requires and excludes in the dense leg too, which knows no words."""

import numpy as np

from app.indexes.port import Candidates
from app.retrieval.dense import Vector, exactly_nearest, find_by_vector
from app.retrieval.run import SearchRun

MOST_EXACT = 4096
"""Chunks that are few enough to be scored one by one from the store."""


def nearest_admitted(run: SearchRun, vector: Vector) -> Candidates:
    """Return the scope's nearest chunks among those that the run's restriction admits, as many as there are.

    Few are scored exactly; of many, more and more neighbours are looked at until enough of them are admitted.
    """
    wanted = run.plan.candidates
    index = run.opened.index.keyword
    few = index.holding(run.restriction, MOST_EXACT, run.scope)
    if few is not None:
        return exactly_nearest(run, vector, few)
    limit = wanted
    while True:
        found = find_by_vector(run, vector, limit)
        kept = np.isin(found.keys, index.admitted(run.restriction, found.keys))
        if int(kept.sum()) >= wanted or len(found.keys) < limit:
            return Candidates(found.keys[kept][:wanted], found.scores[kept][:wanted])
        limit = 4 * limit
