import itertools
import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.indexes.local import dense as dense_module
from app.indexes.local import quantised as quantised_module
from app.indexes.local import rows as rows_module
from app.indexes.local import sketch as sketch_module
from app.indexes.local.dense import FaissDenseIndex
from app.indexes.local.vector_file import load_rows
from app.indexes.port import IndexEntry
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
DIMENSIONS = 48
BLOCK = 64


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).normal(0.2, 1, (count, DIMENSIONS)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def entries(keys: Sequence[int], made: NDArray[np.float32]) -> list[IndexEntry]:
    return [IndexEntry(key, key // 2, (), vector) for key, vector in zip(keys, made, strict=True)]


def write(
    index: FaissDenseIndex, upserts: Sequence[IndexEntry], deletes: Sequence[int] = (), revision: int = 1
) -> None:
    with index.writing() as granted:
        assert granted
        index.apply(upserts, deletes, revision)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rows_module, dense_module):
        monkeypatch.setattr(module, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(quantised_module, "SKETCHED_ROWS", BLOCK // 2)
    # So few rows are never passed over otherwise.
    monkeypatch.setattr(sketch_module, "_LEAST_PASSED_OVER", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[FaissDenseIndex]:
    made = FaissDenseIndex(folder)
    yield made
    made.close()


def test_blocks_and_rest_are_searched_as_one(index: FaissDenseIndex) -> None:
    made = vectors(5 * BLOCK + 7)
    write(index, entries(range(len(made)), made))
    for query in vectors(20, seed=1):
        exact = np.argsort(-(made @ query))[:10]
        assert set(exact.tolist()) <= set(index.search(query, 20, EVERYTHING).keys.tolist())
    assert sorted(index.search(vectors(1)[0], 10_000, EVERYTHING).keys.tolist()) == list(range(len(made)))


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_a_scope_is_searched_as_if_there_were_nothing_else(index: FaissDenseIndex, share: float) -> None:
    made = vectors(5 * BLOCK + 7)
    write(index, entries(range(len(made)), made))
    documents = np.flatnonzero(np.random.default_rng(2).random(len(made) // 2) < share)
    inside = np.flatnonzero(np.isin(np.arange(len(made)) // 2, documents))
    for query in vectors(10, seed=1):
        exact = inside[np.argsort(-(made[inside] @ query))][:10]
        found = index.search(query, 20, Scope(documents, None)).keys
        assert len(found) == min(20, len(inside))
        assert np.isin(found, inside).all()
        assert set(exact.tolist()) <= set(found.tolist())


def test_rows_are_deleted_and_replaced_wherever_they_stand(index: FaissDenseIndex) -> None:
    made = vectors(4 * BLOCK + 20)
    write(index, entries(range(len(made)), made))
    gone = list(range(0, len(made), 3))
    changed = vectors(2, seed=5)
    write(index, entries([1, len(made) - 1], changed), gone, revision=2)
    left = sorted(set(range(len(made))) - set(gone) | {1, len(made) - 1})
    assert index.keys().tolist() == left
    assert index.search(changed[0], 1, EVERYTHING).keys.tolist() == [1]
    assert sorted(index.search(changed[0], 10_000, EVERYTHING).keys.tolist()) == left


def test_blocks_that_lost_half_their_rows_are_dissolved(index: FaissDenseIndex) -> None:
    made = vectors(8 * BLOCK)
    write(index, entries(range(len(made)), made))
    kept = list(range(0, len(made), 10))
    write(index, [], sorted(set(range(len(made))) - set(kept)), revision=2)
    assert len(index._rows.blocks) <= 1
    assert index.keys().tolist() == kept
    for query in vectors(10, seed=1):
        exact = np.array(kept)[np.argsort(-(made[kept] @ query))][:5]
        assert set(exact.tolist()) <= set(index.search(query, 20, EVERYTHING).keys.tolist())


def test_equal_vectors_in_blocks_come_by_their_keys(index: FaissDenseIndex) -> None:
    made = vectors(BLOCK)
    made[10:40] = made[5]
    keys = np.random.default_rng(0).permutation(BLOCK).tolist()
    write(index, [IndexEntry(key, 1, (), made[key]) for key in keys])
    assert index.search(made[5], 12, EVERYTHING).keys.tolist() == [5, *range(10, 21)]


def test_reopening_reads_the_rows_from_the_file(index: FaissDenseIndex, folder: Path) -> None:
    made = vectors(3 * BLOCK + 9)
    write(index, entries(range(len(made)), made), revision=41)
    index.close()
    again = FaissDenseIndex(folder)
    assert again.revision() == 41
    query = vectors(1, seed=3)[0]
    one, other = index.search(query, 50, EVERYTHING), again.search(query, 50, EVERYTHING)
    assert one.keys.tolist() == other.keys.tolist()
    np.testing.assert_array_equal(one.scores, other.scores)


def test_large_changes_are_saved_before_closing(index: FaissDenseIndex, folder: Path) -> None:
    write(index, entries(range(3 * BLOCK), vectors(3 * BLOCK)), revision=5)
    assert FaissDenseIndex(folder).revision() == 5
    write(index, entries([1000], vectors(1)), revision=6)
    assert FaissDenseIndex(folder).revision() == 5


def test_a_file_of_a_later_revision_is_left_alone(folder: Path) -> None:
    one, other = FaissDenseIndex(folder), FaissDenseIndex(folder)
    write(one, entries([1, 2], vectors(2)), revision=2)
    write(other, entries([1, 2, 3], vectors(3)), revision=3)
    other.close()
    one.close()
    assert FaissDenseIndex(folder).revision() == 3


def test_a_replacement_overrides_a_file_of_a_later_revision(folder: Path) -> None:
    index = FaissDenseIndex(folder)
    write(index, entries([1, 2, 3], vectors(3)), revision=30)
    index.close()
    restored = FaissDenseIndex(folder)
    with restored.writing():
        restored.replace(iter([entries([1], vectors(1))]), 4)
    restored.close()
    again = FaissDenseIndex(folder)
    assert (again.revision(), again.keys().tolist()) == (4, [1])


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_a_damaged_file_counts_as_none_and_says_so(
    index: FaissDenseIndex, folder: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = vectors(3 * BLOCK)
    write(index, entries(range(len(made)), made), revision=5)
    index.close()
    file = folder / "dense.npz"
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    elif damage == "foreign":
        data = bytearray(b"something else entirely")
    else:
        data = bytearray()
    file.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        again = FaissDenseIndex(folder)
    assert (again.revision(), again.keys().tolist()) == (0, [])
    assert "vectors" in caplog.text
    write(again, entries([1], vectors(1)), revision=1)
    again.close()
    assert FaissDenseIndex(folder).revision() == 1


@pytest.mark.parametrize("byte", [b"(", b"0", b"\n"])
def test_a_damaged_byte_where_an_array_is_described_is_damage(
    index: FaissDenseIndex, folder: Path, byte: bytes
) -> None:
    made = vectors(3 * BLOCK)
    write(index, entries(range(len(made)), made), revision=5)
    index.close()
    file = folder / "dense.npz"
    data = file.read_bytes()
    # Of a longer array the checksum is read last.
    begin = data.index(b"\x93NUMPY", data.index(b"codes_0.npy"))
    for place in range(begin, data.index(b"\n", begin) + 1):
        file.write_bytes(data[:place] + byte + data[place + 1 :])
        assert load_rows(file).revision in (0, 5)


def test_a_file_of_another_format_counts_as_none(
    index: FaissDenseIndex, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(index, entries([1], vectors(1)), revision=5)
    index.close()
    monkeypatch.setattr("app.indexes.local.vector_file.FORMAT", 3)
    assert FaissDenseIndex(folder).revision() == 0


def test_a_disk_that_is_full_fails_no_write(
    index: FaissDenseIndex, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dense_module, "save_rows", full)
    with caplog.at_level(logging.WARNING):
        write(index, entries(range(3 * BLOCK), vectors(3 * BLOCK)), revision=5)
    assert len(index.keys()) == 3 * BLOCK
    assert "not saved" in caplog.text


def test_closing_in_a_deleted_collection_makes_nothing(index: FaissDenseIndex, folder: Path) -> None:
    write(index, entries([1], vectors(1)), revision=5)
    shutil.rmtree(folder.parent)
    index.close()
    assert not folder.parent.exists()


def test_closing_does_not_wait_for_a_writer(index: FaissDenseIndex) -> None:
    with index.writing():
        closer = threading.Thread(target=index.close)
        closer.start()
        closer.join(5)
        assert not closer.is_alive()


def test_vectors_of_another_dimension_are_refused_until_all_are_replaced(index: FaissDenseIndex) -> None:
    write(index, entries([1], vectors(1)))
    other = IndexEntry(2, 2, (), np.ones(7, np.float32))
    with pytest.raises(ValueError, match="dimension"), index.writing():
        index.apply([other], [], 2)
    with index.writing():
        index.replace(iter([[other]]), 2)
    assert index.search(np.ones(7, np.float32), 5, EVERYTHING).keys.tolist() == [2]


@pytest.mark.parametrize("dimensions", [1, 3, 64, 384])
def test_any_number_of_dimensions_works(folder: Path, dimensions: int) -> None:
    made = np.random.default_rng(0).normal(size=(2 * BLOCK, dimensions)).astype(np.float32)
    made[:, 0] = 0.5
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    index = FaissDenseIndex(folder)
    write(index, [IndexEntry(key, key, (), vector) for key, vector in enumerate(made)])
    found = index.search(made[7], 2 * BLOCK, EVERYTHING)
    np.testing.assert_allclose(found.scores, made[found.keys] @ made[7], atol=0.03)


def test_blocks_of_one_size_become_one_that_finds_as_much(index: FaissDenseIndex) -> None:
    made = vectors(4 * BLOCK + 5)
    keys = np.random.default_rng(3).permutation(len(made)).tolist()
    write(index, [IndexEntry(key, key // 2, (), made[key]) for key in keys])
    assert [len(block) for block in index._rows.blocks] == [4 * BLOCK]
    assert index.keys().tolist() == list(range(len(made)))
    for query in vectors(20, seed=1):
        found = index.search(query, 30, EVERYTHING)
        assert set(np.argsort(-(made @ query))[:10].tolist()) <= set(found.keys.tolist())
        np.testing.assert_allclose(found.scores, made[found.keys] @ query, atol=0.03)


def test_blocks_stay_few_and_within_the_largest_size_as_rows_arrive(
    index: FaissDenseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "LARGEST_BLOCK", 12 * BLOCK)
    made = vectors(30 * BLOCK)
    counts = []
    for revision in range(30):
        keys = range(revision * BLOCK, (revision + 1) * BLOCK)
        write(index, entries(keys, made[keys.start : keys.stop]), revision=revision + 1)
        sizes = sorted((len(block) // BLOCK for block in index._rows.blocks), reverse=True)
        counts.append(len(sizes))
        assert max(sizes) <= 12
        assert all(more > 3 * less or more + less > 12 for more, less in itertools.pairwise(sizes))
    assert max(counts) <= 5
    assert index.keys().tolist() == list(range(len(made)))
    for query in vectors(10, seed=1):
        assert set(np.argsort(-(made @ query))[:10].tolist()) <= set(index.search(query, 30, EVERYTHING).keys.tolist())


def test_deleted_rows_stay_deleted_in_blocks_that_are_reopened(index: FaissDenseIndex, folder: Path) -> None:
    made = vectors(5 * BLOCK)
    write(index, entries(range(len(made)), made))
    gone = list(range(7, len(made), 9))
    write(index, [], gone, revision=2)
    with index.writing():
        index._save()
    left = sorted(set(range(len(made))) - set(gone))
    again = FaissDenseIndex(folder)
    assert (again.revision(), again.keys().tolist()) == (2, left)
    assert sorted(again.search(made[7], 1000, EVERYTHING).keys.tolist()) == left
    assert again._rows.blocks[0].deleted


def test_erasing_leaves_no_deleted_row_in_a_block(index: FaissDenseIndex) -> None:
    made = vectors(5 * BLOCK)
    write(index, entries(range(len(made)), made))
    write(index, [], [3, 4], revision=2)
    with index.writing():
        assert index.erase()
    assert [block.deleted for block in index._rows.blocks] == [0, 0]
    assert len(index.keys()) == len(made) - 2


def test_what_was_written_is_found_although_its_sketch_could_not_be_made(
    index: FaissDenseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise MemoryError

    made = vectors(2 * BLOCK)
    with monkeypatch.context() as patched:
        patched.setattr(quantised_module, "make_sketch", fail)
        with pytest.raises(MemoryError):
            write(index, entries(range(len(made)), made))
    assert (index.revision(), len(index.keys())) == (1, len(made))
    assert index.search(made[9], 1, EVERYTHING).keys.tolist() == [9]
    write(index, [], [0], revision=2)
    assert all(block.sketch for block in index._rows.blocks)


def test_the_same_rows_give_the_same_file(tmp_path: Path) -> None:
    made = vectors(6 * BLOCK)
    files = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        index = FaissDenseIndex(tmp_path / name)
        with index.writing():
            index.replace([entries(range(len(made)), made)], 3)
        files.append(np.load(index.file))
    assert files[0].files == files[1].files
    for name in files[0].files:
        np.testing.assert_array_equal(files[0][name], files[1][name])
    for file in files:
        file.close()


def test_a_query_of_zeros_finds_something(index: FaissDenseIndex) -> None:
    write(index, entries(range(2 * BLOCK), vectors(2 * BLOCK)))
    found = index.search(np.zeros(DIMENSIONS, np.float32), 5, EVERYTHING)
    assert (len(found.keys), found.scores.tolist()) == (5, [0.0] * 5)
