"""Vectors as they came, with the chunk and document each belongs to, and what every kind of rows shares.

Rows of every kind are immutable, so that searches need no lock.
"""

import threading
from dataclasses import dataclass
from typing import TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from app.stores.port import Keys

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = tuple[Keys, Floats]
"""Chunk keys and scores."""


class _Workspace(threading.local):
    """Arrays of one thread that faiss reads and writes, and their addresses.

    Every call of faiss gives the interpreter's lock away, the one that asks for an address too; to get the lock back
    takes longer than many a search while another thread works.
    """

    def __init__(self) -> None:
        # It would wake a team of threads for every query.
        faiss.omp_set_num_threads(1)
        self.make_room(1, 1)

    def make_room(self, dimensions: int, hits: int) -> None:
        """Have room for a query of so many dimensions and so many hits."""
        self.query = np.empty(dimensions, np.float32)
        self.products = np.empty(hits, np.float32)
        self.rows = np.empty(hits, np.int64)
        self.addresses = tuple(faiss.swig_ptr(array) for array in (self.query, self.products, self.rows))

    def take(self, query: Floats, hits: int) -> None:
        """Copy the query in, and have room for its hits."""
        if len(self.query) != len(query) or len(self.products) < hits:
            self.make_room(len(query), max(hits, len(self.products)))
        self.query[:] = query


_workspace = _Workspace()


def search_alone(
    index: faiss.Index, query: Floats, limit: int, parameters: faiss.SearchParameters | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """Return rows of the index and their products with the query, the greatest first; on this thread alone.

    A row is -1 where there are fewer.
    """
    _workspace.take(query, limit)
    given, products, rows = _workspace.addresses
    # What `Index.search` of the package calls once it has asked for three addresses.
    index.search_c(1, given, limit, products, rows, parameters)  # type: ignore[attr-defined]
    return _workspace.rows[:limit].copy(), _workspace.products[:limit].copy()


@dataclass(frozen=True, slots=True)
class ExactRows:
    """Rows as they came: `vectors` is float32, one row per chunk."""

    keys: Keys
    documents: Keys
    vectors: Floats

    @classmethod
    def none(cls, dimensions: int) -> "ExactRows":
        """Return no rows."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, dimensions), np.float32))

    @classmethod
    def joined(cls, parts: "list[ExactRows]") -> "ExactRows":
        """Return the rows of all parts, which are of one dimension."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls.none(0)
        return cls(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.documents for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.keys)

    def picked(self, rows: NDArray[np.int64] | Mask) -> "ExactRows":
        """Return a copy of some of the rows."""
        return ExactRows(self.keys[rows], self.documents[rows], self.vectors[rows])

    def without(self, gone: Keys) -> "ExactRows":
        """Return the rows but those of these chunks."""
        kept = np.isin(self.keys, gone, invert=True)
        return self if kept.all() else self.picked(kept)

    def nearest(self, query: Floats, limit: int, documents: Keys | None) -> Found:
        """Return the chunks of the greatest inner product among the documents' (`None` for all), in no order."""
        if documents is None:
            return best(self.keys, _products(self.vectors, query), limit)
        inside = among(self.documents, documents)
        # Copying a few rows is faster than multiplying all of them, and copying most is not.
        if 4 * np.count_nonzero(inside) < len(self):
            scores = _products(self.vectors[inside], query)
        else:
            scores = _products(self.vectors, query)[inside]
        return best(self.keys[inside], scores, limit)


def among(values: Keys, wanted: Keys) -> Mask:
    """Return which of the values are among the wanted ones, which are sorted."""
    if not len(values) or not len(wanted):
        return np.zeros(len(values), np.bool_)
    low, high = int(values.min()), int(values.max())
    first, last = np.searchsorted(wanted, (low, high + 1))
    if high - low > 16 * len(values):
        return np.isin(values, wanted[first:last])
    # Keys of one part lie close together: to look each up in a table takes a fifth of sorting and searching them.
    table = np.zeros(high - low + 1, np.bool_)
    table[wanted[first:last] - low] = True
    return table.take(values - low)


def _products(vectors: Floats, query: Floats) -> Floats:
    count, dimensions = vectors.shape
    if len(query) != dimensions:
        # Of a collection that moves to another space meanwhile; faiss would read on beyond the query.
        raise ValueError(f"a query of {len(query)} dimensions cannot be compared with vectors of {dimensions}")
    # numpy would wake BLAS threads for it, and wait for them 20 ms where the processor is busy.
    _workspace.take(query, count)
    given, products, _ = _workspace.addresses
    faiss.fvec_inner_products_ny(products, given, faiss.swig_ptr(vectors), dimensions, count)  # type: ignore[attr-defined]
    return _workspace.products[:count].copy()


def best(keys: Keys, scores: Floats, limit: int) -> Found:
    """Return the `limit` (at least 1) greatest scores, best first, equal ones by the smaller key."""
    if len(scores) > 4 * limit:
        # Keeps every score that ties with the last one wanted.
        chosen = scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]
        keys, scores = keys[chosen], scores[chosen]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]
