"""Blocks of vectors, one byte a dimension, with a sketch by which most rows of a search are passed over.

A block has its own scale and its own sketch, made of exactly the rows it holds: nothing is trained ahead, nothing is
clipped, and rows that arrive later cannot make it worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from app.indexes.local.sketch import ZERO_CODE, Codes, make_sketch, reach_of
from app.indexes.local.vectors import ExactRows, Floats, Found, Mask, among, search_alone
from app.stores.port import Keys

SKETCHED_ROWS = 16_384
"""Rows from which on a block has a sketch; the bytes of fewer take 0.2 ms more, and miss no hit."""

_STEPS = 127
_ROWS_AT_ONCE = 4096

NOT_MEASURED = -1
"""The reach of rows of which no sketch was made yet; 0 is that of rows for which one is of no use."""

_QUERIES_MEASURED = 64

# Smaller ones vanish in float32.
_LEAST_UNIT = 1e-36

# Looked at closer, whichever is more, or the block's reach.
_CANDIDATES_PER_HIT = 4
_ROWS_PER_CANDIDATE = 64

_SKETCHED_SHARE = 3
"""A scope of less than one row in so many is scanned byte by byte, which then takes less time."""

_Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedRows:
    """Rows of one byte a dimension: `vector ~ offset + scale * (code - 128)`, searched by faiss.

    Rows stand by key. Deleted ones stay until `cleaned`, and `live` (`None` for all) tells them apart. `refined` finds
    the best by the bytes among the best by the sketch. The query is rounded too, to whole numbers of the same range:
    where the processor multiplies bytes, faiss then takes half the time of float queries, and the scores are the same
    on processors where it cannot.
    """

    every_key: Keys
    every_document: Keys
    scanned: faiss.IndexScalarQuantizer
    offset: Floats
    scale: Floats
    sketch: faiss.IndexPQFastScan | None = None
    refined: faiss.IndexRefine | None = None
    reach: int = NOT_MEASURED
    live: Mask | None = None

    @classmethod
    def of(cls, rows: ExactRows) -> "QuantisedRows":
        """Quantise rows, at least one."""
        # By key, so that equal scores are found in that order.
        rows = rows.picked(np.argsort(rows.keys))
        offset, scale = _range(rows.vectors.min(axis=0), rows.vectors.max(axis=0))
        return cls.of_codes(rows.keys, rows.documents, _quantised(rows.vectors, offset, scale), offset, scale)

    @classmethod
    def joined(cls, blocks: "Sequence[QuantisedRows]") -> "QuantisedRows":
        """Return the rows of all blocks in one, each rounded once more."""
        blocks = [block.cleaned() for block in blocks]
        ends = [block.offset + block.scale * (_ends(block.codes) - np.float32(ZERO_CODE)) for block in blocks]
        offset, scale = _range(np.min(ends, axis=(0, 1)), np.max(ends, axis=(0, 1)))
        keys = np.concatenate([block.every_key for block in blocks])
        documents = np.concatenate([block.every_document for block in blocks])
        order = np.argsort(keys)
        places = np.split(np.argsort(order), np.cumsum([*map(len, blocks)])[:-1])
        codes = np.empty((len(keys), len(offset)), np.uint8)
        # Each to where its rows belong: all of them together, and then in order, would take twice the room.
        for block, rows in zip(blocks, places, strict=True):
            codes[rows] = block.recoded(offset, scale)
        return cls.of_codes(keys[order], documents[order], codes, offset, scale)

    @classmethod
    def of_codes(
        cls, keys: Keys, documents: Keys, codes: Codes, offset: Floats, scale: Floats, live: Mask | None = None
    ) -> "QuantisedRows":
        """Take rows that are quantised already."""
        scanned = faiss.IndexScalarQuantizer(
            len(offset), faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        scanned.add_sa_codes(np.ascontiguousarray(codes))
        return cls(keys, documents, scanned, offset, scale, live=live)

    def __len__(self) -> int:
        """Return the number of rows that are not deleted."""
        return len(self.every_key) if self.live is None else int(np.count_nonzero(self.live))

    @property
    def deleted(self) -> int:
        """Return how many deleted rows still stand in it."""
        return len(self.every_key) - len(self)

    @property
    def keys(self) -> Keys:
        """Return the chunk key of each row that is not deleted."""
        return self.every_key if self.live is None else self.every_key[self.live]

    @property
    def codes(self) -> Codes:
        """Return a copy of all codes, those of deleted rows too: uint8, one row per chunk."""
        codes: Codes = faiss.vector_to_array(self.scanned.codes)
        return codes.reshape(len(self.every_key), -1)

    def decoded(self) -> ExactRows:
        """Return the rows with the vectors that the codes stand for."""
        kept = slice(None) if self.live is None else self.live
        vectors = self.offset + self.scale * (self.codes[kept].astype(np.float32) - ZERO_CODE)
        return ExactRows(self.every_key[kept], self.every_document[kept], vectors)

    def recoded(self, offset: Floats, scale: Floats) -> Codes:
        """Return all codes as they are with another offset and scale."""
        codes = self.codes
        # A slice at a time: all values at once would take four times the room of the block.
        for first in range(0, len(codes), _ROWS_AT_ONCE):
            some = codes[first : first + _ROWS_AT_ONCE]
            values = self.offset + self.scale * (some.astype(np.float32) - ZERO_CODE)
            some[:] = _quantised(values, offset, scale)
        return codes

    def sketched(self) -> "QuantisedRows":
        """Return the same rows with a sketch, where they are enough for one and it tells them apart."""
        if self.reach != NOT_MEASURED or len(self.every_key) < SKETCHED_ROWS:
            return self
        codes = self.codes
        sketch = make_sketch(codes)
        some = codes[np.linspace(0, len(codes) - 1, _QUERIES_MEASURED).astype(np.int64)]
        vectors = self.offset + self.scale * (some.astype(np.float32) - ZERO_CODE)
        queries = np.stack([self._rounded(vector)[0] for vector in vectors])
        return self.with_sketch(sketch, reach_of(sketch, self.scanned, queries))

    def with_sketch(self, sketch: faiss.IndexPQFastScan | None, reach: int) -> "QuantisedRows":
        """Return the same rows with a sketch that was made of them, unless it has no reach."""
        if sketch is None or not reach:
            return replace(self, reach=reach)
        return replace(self, sketch=sketch, refined=faiss.IndexRefine(sketch, self.scanned), reach=reach)

    def without(self, gone: Keys) -> "QuantisedRows":
        """Return the rows but those of these chunks."""
        places = np.searchsorted(self.every_key, gone)
        places = places[self.every_key.take(places, mode="clip") == gone]
        if self.live is not None:
            places = places[self.live[places]]
        if not len(places):
            return self
        live = np.ones(len(self.every_key), np.bool_) if self.live is None else self.live.copy()
        live[places] = False
        return replace(self, live=live)

    def cleaned(self) -> "QuantisedRows":
        """Return the rows with nothing left of the deleted ones."""
        if self.live is None:
            return self
        kept = self.live
        return self.of_codes(self.every_key[kept], self.every_document[kept], self.codes[kept], self.offset, self.scale)

    def nearest(self, query: Floats, limit: int, documents: Keys | None) -> Found:
        """Return the chunks of the greatest inner product among the documents' (`None` for all), in no order."""
        inside = self.live
        if documents is not None:
            inside = among(self.every_document, documents)
            if self.live is not None:
                inside &= self.live
        count = len(self.every_key) if inside is None else int(np.count_nonzero(inside))
        limit = min(limit, count)
        if limit == 0:
            return self.every_key[:0], np.zeros(0, np.float32)
        rounded, unit = self._rounded(query)
        rows, products = self._found(rounded, limit, inside, count)
        return self.every_key[rows], products * np.float32(unit) + self.offset @ query

    def _rounded(self, query: Floats) -> tuple[Floats, float]:
        """Return the query as whole numbers that multiply codes, and what one of the products counts."""
        # x.q = offset.q + (code - 128).(scale q), and the scaled query is a multiple of whole numbers up to 127.
        scaled = self.scale * query
        unit = float(np.abs(scaled).max()) / _STEPS
        if unit < _LEAST_UNIT:
            unit = 1.0
        return np.rint(scaled / unit), unit

    def _found(self, query: Floats, limit: int, inside: Mask | None, count: int) -> tuple[_Rows, Floats]:
        if self.refined is not None and count * _SKETCHED_SHARE >= len(self.every_key):
            candidates = self._candidates(limit, count)
            rows, products = _looked_at(self.refined, query, candidates, limit if inside is None else candidates)
            # None where the sketch tells no row from another, as for a query of zeros.
            kept = rows >= 0
            if inside is not None:
                kept &= inside[rows]
            # The query's neighbours may stand mostly outside.
            if np.count_nonzero(kept) >= limit:
                return rows[kept], products[kept]
        return self._scanned(query, limit, inside)

    def _candidates(self, limit: int, count: int) -> int:
        """Return how many of the sketch's first rows hold the first `limit` of the `count` in scope."""
        total = len(self.every_key)
        looked_at = max(_CANDIDATES_PER_HIT * limit, self.reach, total // _ROWS_PER_CANDIDATE)
        return min(total, looked_at if count == total else looked_at * total * 5 // (count * 4))

    def _scanned(self, query: Floats, limit: int, inside: Mask | None) -> tuple[_Rows, Floats]:
        parameters = None
        if inside is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(inside, bitorder="little"))  # type: ignore[call-arg,arg-type]
            parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        return search_alone(self.scanned, query, limit, parameters)


def _looked_at(refined: faiss.IndexRefine, query: Floats, candidates: int, wanted: int) -> tuple[_Rows, Floats]:
    """Return the `wanted` best by the bytes of the sketch's first `candidates`; all of these where the last one ties.

    Faiss puts in order only what it gives, and of equal rows it gives any.
    """
    if wanted < candidates:
        # Faiss rounds the number that it gives times the factor down.
        closer = faiss.IndexRefineSearchParameters(k_factor=(candidates + 0.5) / (wanted + 1))  # type: ignore[call-arg]
        rows, products = search_alone(refined, query, wanted + 1, closer)
        if products[-2] > products[-1]:
            return rows[:-1], products[:-1]
    return search_alone(refined, query, candidates)


def _range(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the offset and the scale of codes that reach from the least to the greatest value of each dimension."""
    scale: Floats = (high - low) / np.float32(2 * _STEPS)
    scale[scale == 0] = 1
    offset: Floats = (low + high) / np.float32(2)
    return offset, scale


def _quantised(vectors: Floats, offset: Floats, scale: Floats) -> Codes:
    codes: Codes = (np.rint((vectors - offset) / scale) + ZERO_CODE).astype(np.uint8)
    return codes


def _ends(codes: Codes) -> Floats:
    return np.stack((codes.min(axis=0), codes.max(axis=0))).astype(np.float32)
