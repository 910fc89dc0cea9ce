"""What a dense index must find in clusters, and among more rows than an engine keeps as they came."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.indexes.port import DenseIndex, IndexEntry
from app.indexes.registry import INDEXES, create_index
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
DIMENSIONS = 24
ROWS = 40_000
ROWS_PER_DOCUMENT = 10


@pytest.fixture(params=sorted(INDEXES))
def dense(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DenseIndex]:
    index = create_index(tmp_path, "contract", request.param)
    yield index.dense
    index.close()


@pytest.fixture
def vectors() -> np.ndarray:
    random = np.random.default_rng(0)
    centers = random.normal(0.3, 1, (60, DIMENSIONS))
    # By cluster, so that all neighbours of a query were written together.
    vectors = (np.repeat(centers, ROWS // 60 + 1, axis=0)[:ROWS]).astype(np.float32)
    vectors += random.normal(0, 0.4, vectors.shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def filled(dense: DenseIndex, vectors: np.ndarray) -> DenseIndex:
    with dense.writing():
        for first in range(0, ROWS, 4096):
            some = range(first, min(first + 4096, ROWS))
            batch = [IndexEntry(row, row // ROWS_PER_DOCUMENT, (), vectors[row]) for row in some]
            dense.apply(batch, [], some[-1] + 1)
    return dense


def recall(dense: DenseIndex, vectors: np.ndarray, rows: np.ndarray, scope: Scope) -> float:
    shares = []
    for place in range(40):
        query = vectors[place * 997] + vectors[place * 991 + 5]
        true = rows[np.argsort(-(vectors[rows] @ query))[:10]]
        shares.append(np.isin(true, dense.search(query / np.linalg.norm(query), 40, scope).keys).mean())
    return float(np.mean(shares))


def test_the_first_forty_hold_the_true_ten_before_and_after_deletions(filled: DenseIndex, vectors: np.ndarray) -> None:
    rows = np.arange(ROWS)
    assert recall(filled, vectors, rows, EVERYTHING) >= 0.99
    # Whole clusters, so that what lies nearest to some queries is gone.
    gone = (rows // 700) % 5 == 0
    with filled.writing():
        filled.apply([], rows[gone].tolist(), ROWS + 1)
    assert filled.keys().tolist() == rows[~gone].tolist()
    assert recall(filled, vectors, rows[~gone], EVERYTHING) >= 0.99


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7])
def test_a_scope_is_searched_as_if_there_were_nothing_else(
    filled: DenseIndex, vectors: np.ndarray, share: float
) -> None:
    documents = np.flatnonzero(np.random.default_rng(2).random(ROWS // ROWS_PER_DOCUMENT) < share)
    rows = np.flatnonzero(np.isin(np.arange(ROWS) // ROWS_PER_DOCUMENT, documents))
    assert recall(filled, vectors, rows, Scope(documents, None)) >= 0.99


def test_a_scope_far_from_the_query_is_searched_as_well(filled: DenseIndex, vectors: np.ndarray) -> None:
    # All documents but those of the query's own cluster and its like.
    query = vectors[100]
    near = np.argsort(-(vectors @ query))[: ROWS // 2] // ROWS_PER_DOCUMENT
    documents = np.setdiff1d(np.arange(ROWS // ROWS_PER_DOCUMENT), near)
    rows = np.flatnonzero(np.isin(np.arange(ROWS) // ROWS_PER_DOCUMENT, documents))
    true = rows[np.argsort(-(vectors[rows] @ query))[:10]]
    found = filled.search(query, 40, Scope(documents, None)).keys
    assert len(found) == 40
    assert np.isin(true, found).all()


def test_a_scope_of_one_document_in_a_thousand_is_found_whole(filled: DenseIndex, vectors: np.ndarray) -> None:
    documents = np.array([17, 1400, 2222, 3999])
    rows = np.flatnonzero(np.isin(np.arange(ROWS) // ROWS_PER_DOCUMENT, documents))
    found = filled.search(vectors[5], 100, Scope(documents, None)).keys
    assert sorted(found.tolist()) == rows.tolist()
