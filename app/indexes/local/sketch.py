"""Sketches of vectors: two dimensions in four bits, scanned by faiss, so that most rows are never looked at closer.

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
_ROWS_AT_ONCE = 4096


def make_sketch(codes: Codes) -> faiss.IndexPQFastScan:
    """Return the sketch of a block's rows, at least one; always the same for the same rows."""
    count, dimensions = codes.shape
    parts = dimensions // 2 if dimensions % 2 == 0 else dimensions
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
