"""Sketches of vectors: half a byte for two dimensions, scanned by faiss, so that most rows are never looked at closer.

Product quantisation (Jégou 2011) with tables in the processor's registers (André 2015), over the bytes of one block.
"""

from typing import TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint8]

ZERO_CODE = 128
"""The byte that stands for 0."""

_ROWS_TRAINED = 2048
_ROUNDS = 4
_BITS = 4
_PAIRED_DIMENSIONS = 128
_ROWS_AT_ONCE = 4096
_HITS = 10
_SHARE_FOUND = 0.995
_LEAST_PASSED_OVER = 8


def make_sketch(codes: Codes) -> faiss.IndexPQFastScan:
    """Return the sketch of a block's rows, at least one; always the same for the same rows."""
    count, dimensions = codes.shape
    parts = dimensions // 2 if dimensions % 2 == 0 and dimensions >= _PAIRED_DIMENSIONS else dimensions
    sketch = faiss.IndexPQFastScan(dimensions, parts, _BITS, faiss.METRIC_INNER_PRODUCT)
    sketch.pq.cp.niter = _ROUNDS
    sketch.pq.cp.min_points_per_centroid = 1
    # Several threads would take the processors from searches, and add up in another order each time.
    faiss.omp_set_num_threads(1)
    trained = np.linspace(0, count - 1, max(min(count, _ROWS_TRAINED), 2**_BITS)).astype(np.int64)
    sketch.train(_values(codes[trained]))
    for first in range(0, count, _ROWS_AT_ONCE):
        sketch.add(_values(codes[first : first + _ROWS_AT_ONCE]))
    return sketch


def reach_of(sketch: faiss.IndexPQFastScan, scanned: faiss.Index, queries: NDArray[np.float32]) -> int:
    """Return of how many rows that are first by the sketch a search must look closer at; 0 for more than it is worth.

    Among so many stood the ten that are first by the bytes of nearly all the queries: more where rows lie close.
    """
    most = sketch.ntotal // _LEAST_PASSED_OVER
    true = scanned.search(queries, min(_HITS, sketch.ntotal))[1]
    first = sketch.search(queries, most)[1]
    ranks = [np.argmax(np.append(found == row, True)) for hits, found in zip(true, first, strict=True) for row in hits]
    reach = int(np.quantile(ranks, _SHARE_FOUND)) + 1
    return reach if reach < most else 0


def sketch_bytes(sketch: faiss.IndexPQFastScan | None) -> Codes:
    """Return what `load_sketch` reads; nothing for none."""
    return np.zeros(0, np.uint8) if sketch is None else faiss.serialize_index(sketch)


def load_sketch(stored: Codes) -> faiss.IndexPQFastScan | None:
    """Return the sketch of these bytes; raise `TypeError` or `RuntimeError` for bytes of anything else."""
    if not len(stored):
        return None
    sketch = faiss.deserialize_index(stored)
    if not isinstance(sketch, faiss.IndexPQFastScan):
        raise TypeError(f"{type(sketch).__name__} is no sketch")
    return sketch


def _values(codes: Codes) -> NDArray[np.float32]:
    return codes.astype(np.float32) - ZERO_CODE
