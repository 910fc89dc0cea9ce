"""Both embedded engines show a batch whole, which is more than the port asks of an engine without transactions."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.indexes.port import CollectionIndex, Follower, IndexEntry
from app.indexes.registry import create_index
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
VECTOR = np.array([0.6, 0.8], np.float32)


def find_by_term(index: CollectionIndex) -> int:
    return len(index.keyword.search(["word"], 100, EVERYTHING).keys)


def find_by_vector(index: CollectionIndex) -> int:
    return len(index.dense.search(VECTOR, 100, EVERYTHING).keys)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[CollectionIndex]:
    made = create_index(tmp_path, "s", "local")
    yield made
    made.close()


@pytest.mark.parametrize(("leg", "find"), [("keyword", find_by_term), ("dense", find_by_vector)])
def test_a_search_never_sees_part_of_a_batch(
    index: CollectionIndex, leg: str, find: Callable[[CollectionIndex], int]
) -> None:
    follower: Follower = getattr(index, leg)
    some = [IndexEntry(key, key, ["word"], VECTOR) for key in range(40)]
    others = [IndexEntry(key, key, ["word"], VECTOR) for key in range(40, 80)]
    with follower.writing():
        follower.apply(some, [], 1)
    seen: set[int] = set()
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            seen.add(find(index))

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        with follower.writing():
            follower.apply(others, [], 2 * turn + 2)
        with follower.writing():
            follower.apply([], range(40, 80), 2 * turn + 3)
    done.set()
    for thread in threads:
        thread.join()
    assert seen <= {40, 80}
