import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.indexes.local.quantised import QuantisedRows
from app.indexes.local.vectors import ExactRows, among, best

SMALL = st.floats(-1, 1, width=32)


def rows_of(vectors: np.ndarray) -> ExactRows:
    keys = np.arange(len(vectors), dtype=np.int64)
    return ExactRows(keys, keys, vectors)


@settings(max_examples=60, deadline=None)
@given(vectors=arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 20)), elements=SMALL))
def test_no_value_is_off_by_more_than_half_a_step_of_its_dimension(vectors: np.ndarray) -> None:
    decoded = QuantisedRows.of(rows_of(vectors)).decoded().vectors
    step = (vectors.max(axis=0) - vectors.min(axis=0)) / 254
    assert np.all(np.abs(decoded - vectors) <= step * 0.51 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(
    vectors=arrays(np.float32, st.tuples(st.integers(1, 40), st.just(64)), elements=SMALL),
    query=arrays(np.float32, st.just(64), elements=SMALL),
)
def test_scores_are_the_products_of_what_the_codes_stand_for_with_a_rounded_query(
    vectors: np.ndarray, query: np.ndarray
) -> None:
    rows = QuantisedRows.of(rows_of(vectors))
    keys, scores = rows.nearest(query, len(rows), None)
    decoded = rows.decoded()
    exact = decoded.vectors @ query
    # Rounding the scaled query moves each of its values by at most half a step.
    steps = np.abs(rows.scale * query).max() / 127
    bound = 0.5 * steps * np.abs((decoded.vectors - rows.offset) / rows.scale).sum(axis=1) + 1e-4
    assert sorted(keys.tolist()) == list(range(len(rows)))
    assert np.all(np.abs(scores - exact[keys]) <= bound[keys])


def test_removed_rows_leave_no_trace_in_a_block() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    left = QuantisedRows.of(rows_of(vectors)).without(np.arange(10, 40))
    assert left.keys.tolist() == [*range(10), *range(40, 50)]
    assert left.cleaned().codes.shape == (20, 8)
    np.testing.assert_allclose(left.decoded().vectors, vectors[left.keys], atol=0.05)


def test_a_block_that_loses_nothing_stays_the_same_object() -> None:
    block = QuantisedRows.of(rows_of(np.eye(4, dtype=np.float32)))
    assert block.without(np.array([99])) is block


@settings(max_examples=100, deadline=None)
@given(
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=60),
    limit=st.integers(1, 70),
    seed=st.integers(0, 9),
)
def test_the_best_are_the_greatest_and_equal_ones_come_by_key(scores: list[float], limit: int, seed: int) -> None:
    keys = np.random.default_rng(seed).permutation(len(scores)).astype(np.int64)
    expected = sorted(zip(keys.tolist(), scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:limit]
    found_keys, found_scores = best(keys, np.array(scores, np.float32), limit)
    assert list(zip(found_keys.tolist(), found_scores.tolist(), strict=True)) == expected


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-50, 10**9), max_size=40) | st.lists(st.integers(0, 60), max_size=40),
    wanted=st.sets(st.integers(-60, 70) | st.integers(0, 10**9), max_size=40),
)
def test_values_among_the_wanted_ones_are_those_that_a_set_holds(values: list[int], wanted: set[int]) -> None:
    found = among(np.array(values, np.int64), np.array(sorted(wanted), np.int64))
    assert found.tolist() == [value in wanted for value in values]


@settings(max_examples=40, deadline=None)
@given(
    vectors=arrays(np.float32, st.tuples(st.integers(4, 60), st.integers(1, 12)), elements=SMALL),
    gone=st.integers(0, 3),
)
def test_joined_blocks_hold_the_rows_of_all_and_are_off_by_at_most_another_half_step(
    vectors: np.ndarray, gone: int
) -> None:
    keys = np.random.default_rng(1).permutation(len(vectors)).astype(np.int64)
    rows = ExactRows(keys, keys + 100, vectors)
    half = len(vectors) // 2
    blocks = [QuantisedRows.of(rows.picked(np.arange(half))), QuantisedRows.of(rows.picked(np.arange(half, len(keys))))]
    joined = QuantisedRows.joined([block.without(np.array([gone])) for block in blocks]).decoded()
    left = rows.without(np.array([gone]))
    assert joined.keys.tolist() == sorted(left.keys.tolist())
    assert (joined.documents - joined.keys == 100).all()
    step = (vectors.max(axis=0) - vectors.min(axis=0)) / 254
    assert np.all(np.abs(joined.vectors - left.vectors[np.argsort(left.keys)]) <= step * 1.1 + 1e-5)


def test_deleted_rows_are_only_marked_until_they_are_cleaned_away() -> None:
    block = QuantisedRows.of(rows_of(np.eye(8, dtype=np.float32))).without(np.array([2, 5, 77]))
    assert (len(block), block.deleted, len(block.every_key)) == (6, 2, 8)
    assert block.without(np.array([5])) is block
    assert (len(block.cleaned()), block.cleaned().deleted) == (6, 0)
    assert sorted(block.nearest(np.eye(8, dtype=np.float32)[2], 8, None)[0].tolist()) == [0, 1, 3, 4, 6, 7]


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_a_query_of_another_space_reads_no_memory_beyond_it(dimensions: int) -> None:
    rows = ExactRows(np.arange(2), np.arange(2), np.ones((2, 4), np.float32))
    for part in (rows, QuantisedRows.of(rows)):
        with pytest.raises(ValueError, match=r"dimension|shape|size"):
            part.nearest(np.ones(dimensions, np.float32), 2, None)
