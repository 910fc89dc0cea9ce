"""Search only inside the parents that are nearest to the query: first where, then what.

The children of so few parents are scored exactly from the store, so no index of theirs is asked.
"""

import numpy as np

from app.retrieval.dense import Vectors
from app.retrieval.run import SearchRun


def narrow(run: SearchRun, vectors: Vectors | None) -> None:
    """Leave only the children of the nearest parents in the run; a search that cannot be narrowed says so.

    Parents are compared with the query's own vector, the first.
    """
    wanted = run.plan.narrow_to_parents
    if wanted is None:
        return
    if vectors is None:
        missing = "no leg of it compares vectors" if "dense" not in run.plan.legs else "the query has no vector"
        run.warn("not_narrowed", f"the search was not narrowed to the nearest parents: {missing}")
        return
    index = run.opened.index.of_field("parent")
    if index is None:
        run.warn(
            "no_parent_vectors",
            "this collection has no vectors of parents, so the search was not narrowed to some of them; it gets them "
            'where it has "indexing": "enhanced" and its documents are sent, again too, with the chunker parent_child',
        )
        return
    with run.timer.stage("narrow"):
        candidates = index.search(vectors[0], wanted, run.scope)
        children = run.store.children_of(candidates.keys.tolist())
        inside = np.array(sorted(key for keys in children.values() for key in keys), np.int64)
        run.inside = run.opened.index.keyword.admitted(run.restriction, inside) if run.restriction else inside
    run.trace.add("narrow", candidates, children=len(run.inside))
