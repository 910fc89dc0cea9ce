"""Vectors in memory, with the chunk and document each belongs to: exact while few, then one byte a dimension.

Both kinds are immutable, so that searches need no lock. A block of bytes has its own scale, taken from exactly the
rows it holds: nothing is trained ahead, nothing is clipped, and rows that arrive later cannot make it worse.
"""

from dataclasses import dataclass
from typing import TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from app.stores.port import Keys

Floats: TypeAlias = NDArray[np.float32]
Codes: TypeAlias = NDArray[np.uint8]
Found: TypeAlias = tuple[Keys, Floats]
"""Chunk keys and scores."""

_STEPS = 127
_ZERO_CODE = 128

# Smaller ones vanish in float32.
_LEAST_UNIT = 1e-36


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

    def picked(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "ExactRows":
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
        inside = np.isin(self.documents, documents)
        # Copying a few rows is faster than multiplying all of them, and copying most is not.
        if 4 * np.count_nonzero(inside) < len(self):
            scores = _products(self.vectors[inside], query)
        else:
            scores = _products(self.vectors, query)[inside]
        return best(self.keys[inside], scores, limit)


class QuantisedRows:
    """Rows of one byte a dimension: `vector ~ offset + scale * (code - 128)`, searched by faiss.

    The query is rounded too, to whole numbers of the same range: where the processor multiplies bytes, faiss then
    takes half the time of float queries, and the scores are the same on processors where it cannot.
    """

    def __init__(self, keys: Keys, documents: Keys, codes: Codes, offset: Floats, scale: Floats) -> None:
        self.keys = keys
        self.documents = documents
        self.offset = offset
        self.scale = scale
        self._index = faiss.IndexScalarQuantizer(
            len(offset), faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        self._index.add_sa_codes(np.ascontiguousarray(codes))

    @classmethod
    def of(cls, rows: ExactRows) -> "QuantisedRows":
        """Quantise rows, at least one; they come to stand by key, so that equal scores are found in that order."""
        rows = rows.picked(np.argsort(rows.keys))
        low, high = rows.vectors.min(axis=0), rows.vectors.max(axis=0)
        offset = (low + high) / 2
        scale = (high - low) / (2 * _STEPS)
        scale[scale == 0] = 1
        codes = (np.rint((rows.vectors - offset) / scale) + _ZERO_CODE).astype(np.uint8)
        return cls(rows.keys, rows.documents, codes, offset, scale)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.keys)

    @property
    def codes(self) -> Codes:
        """Return a copy of the codes: uint8, one row per chunk."""
        codes: Codes = faiss.vector_to_array(self._index.codes)
        return codes.reshape(len(self), -1)

    def decoded(self) -> ExactRows:
        """Return the rows with the vectors that the codes stand for."""
        vectors = self.offset + self.scale * (self.codes.astype(np.float32) - _ZERO_CODE)
        return ExactRows(self.keys, self.documents, vectors)

    def without(self, gone: Keys) -> "QuantisedRows":
        """Return the rows but those of these chunks, whose codes are then nowhere in it."""
        kept = np.isin(self.keys, gone, invert=True)
        if kept.all():
            return self
        return QuantisedRows(self.keys[kept], self.documents[kept], self.codes[kept], self.offset, self.scale)

    def nearest(self, query: Floats, limit: int, documents: Keys | None) -> Found:
        """Return the chunks of the greatest inner product among the documents' (`None` for all), in no order."""
        parameters = None
        if documents is not None:
            inside = np.isin(self.documents, documents)
            limit = min(limit, int(inside.sum()))
            selector = faiss.IDSelectorBitmap(np.packbits(inside, bitorder="little"))  # type: ignore[call-arg,arg-type]
            parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        limit = min(limit, len(self))
        if limit == 0:
            return self.keys[:0], np.zeros(0, np.float32)
        # x.q = offset.q + (code - 128).(scale q), and the scaled query is a multiple of whole numbers up to 127.
        scaled = self.scale * query
        unit = float(np.abs(scaled).max()) / _STEPS
        if unit < _LEAST_UNIT:
            unit = 1.0
        # Per thread: faiss would wake a team of threads for this one query.
        faiss.omp_set_num_threads(1)
        products, rows = self._index.search(np.rint(scaled / unit)[np.newaxis], limit, params=parameters)
        return self.keys[rows[0]], products[0] * np.float32(unit) + self.offset @ query


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
        among = scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]
        keys, scores = keys[among], scores[among]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]
