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


_threads = threading.local()


def search_on_one_processor() -> None:
    """Let faiss work on this thread alone: it would wake a team of threads for every query."""
    # Every call of faiss gives the interpreter's lock away, and to get it back took longer than many a search.
    if not getattr(_threads, "is_set", False):
        faiss.omp_set_num_threads(1)
        _threads.is_set = True


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
    # numpy would wake BLAS threads for it, and wait for them 20 ms where the processor is busy.
    products = np.empty(len(vectors), np.float32)
    pointers = [faiss.swig_ptr(array) for array in (products, query, vectors)]
    faiss.fvec_inner_products_ny(*pointers, vectors.shape[1], len(vectors))  # type: ignore[attr-defined]
    return products


def best(keys: Keys, scores: Floats, limit: int) -> Found:
    """Return the `limit` (at least 1) greatest scores, best first, equal ones by the smaller key."""
    if len(scores) > 4 * limit:
        # Keeps every score that ties with the last one wanted.
        chosen = scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]
        keys, scores = keys[chosen], scores[chosen]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]
