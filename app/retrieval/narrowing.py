"""Search only inside the parents that are nearest to the query: first where, then what.

The children of so few parents are scored exactly from the store, so no index of theirs is asked.
"""

from dataclasses import replace

import numpy as np

from app.indexes.port import Candidates
from app.retrieval.dense import Vectors
from app.retrieval.run import SearchRun


def narrow(run: SearchRun, vectors: Vectors | None) -> None:
    """Leave only the children of the nearest parents in the run; a collection without parents stays as it is, warned.

    Parents are compared with the query's own vector, the first.
    """
    wanted = run.plan.narrow_to_parents
    index = None if vectors is None else run.opened.index.of_field("parent")
    if wanted is None or vectors is None:
        return
    if index is None:
        run.warn(
            "no_parent_vectors",
            "this collection has no vectors of parents, so the search was not narrowed to some of them; "
            'put its documents with "indexing": "enhanced" and the chunker parent_child',
        )
        return
    with run.timer.stage("narrow"):
        candidates = index.search(vectors[0], wanted, run.scope)
        children = run.store.children_of(candidates.keys.tolist())
        inside = np.array(sorted(key for keys in children.values() for key in keys), np.int64)
        if run.restriction:
            inside = run.opened.index.keyword.admitted(run.restriction, inside)
        documents = [chunk.document_key for chunk in run.store.indexed_chunks(inside.tolist())]
        run.inside = inside
        run.scope = replace(run.scope, document_keys=np.unique(np.array(documents, np.int64)))
    run.trace.add("narrow", candidates, children=len(inside))


def inside_only(run: SearchRun, candidates: Candidates) -> Candidates:
    """Return the candidates that the narrowed search may see."""
    if run.inside is None:
        return candidates
    kept = np.isin(candidates.keys, run.inside)
    return Candidates(candidates.keys[kept], candidates.scores[kept])
