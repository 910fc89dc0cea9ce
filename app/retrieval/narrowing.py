"""Search only inside the parents that are nearest to the query: first where, then what.

The children of so few parents are scored exactly from the store, so no index of theirs is asked. A chunk without a
parent, of a document that was cut otherwise, counts as its own: none is left out for how it was cut.
"""

import numpy as np

from app.indexes.port import Candidates
from app.retrieval.dense import Vector, Vectors
from app.retrieval.fusion import ranked
from app.retrieval.run import SearchRun
from app.stores.port import Keys


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
        parents, loose = index.search(vectors[0], wanted, run.scope), _loose(run, vectors[0], wanted)
        keys = np.concatenate((parents.keys, loose.keys))
        chosen = ranked(keys, np.concatenate((parents.scores, loose.scores)), wanted)
        inside = _inside(run, chosen.keys, loose.keys)
        run.inside = run.opened.index.keyword.admitted(run.restriction, inside) if run.restriction else inside
    run.trace.add("narrow", chosen, children=len(run.inside))


def _loose(run: SearchRun, vector: Vector, limit: int) -> Candidates:
    """Return those of the nearest chunks that have no parent."""
    near = run.opened.index.dense.search(vector, limit, run.scope)
    nested = run.store.parents_of(near.keys.tolist())
    alone = ~np.isin(near.keys, list(nested))
    return Candidates(near.keys[alone], near.scores[alone])


def _inside(run: SearchRun, chosen: Keys, loose: Keys) -> Keys:
    """Return the chunks of the chosen places, sorted."""
    is_loose = np.isin(chosen, loose)
    children = run.store.children_of(chosen[~is_loose].tolist())
    keys = [*chosen[is_loose].tolist(), *(key for inside in children.values() for key in inside)]
    return np.array(sorted(keys), np.int64)
