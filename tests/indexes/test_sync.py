import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pysqlite3 import dbapi2 as sqlite

from app.errors import StoreBusy
from app.indexes import sync
from app.indexes.analysis import Analyzer
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.indexes.port import CollectionIndex, Follower, IndexEntry
from app.indexes.registry import create_index
from app.stores.port import CollectionStore, Scope

EVERYTHING = Scope(None, None)
Put = Callable[[CollectionStore, str, Sequence[str]], None]


def keys_of(opened: OpenCollection) -> tuple[list[int], list[int], list[int]]:
    return tuple(
        keys.tolist() for keys in (opened.store.chunk_keys(), opened.index.keyword.keys(), opened.index.dense.keys())
    )


def sql(opened: OpenCollection, statement: str) -> None:
    with closing(sqlite.connect(opened.folder / "collection.db")) as connection:
        connection.execute(statement)
        connection.commit()


class Recorder:
    """Stand before a follower and remember what is written to it."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.applied: list[tuple[list[int], list[int], int]] = []
        self.entries: list[IndexEntry] = []
        self.replaced = 0

    def apply(self, upserts: Sequence[IndexEntry], deletes: Sequence[int], revision: int) -> None:
        self.applied.append(([entry.chunk_key for entry in upserts], list(deletes), revision))
        self.entries += upserts
        self._follower.apply(upserts, deletes, revision)

    def replace(self, batches: Any, revision: int) -> None:
        self.replaced += 1
        self._follower.replace(batches, revision)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._follower, name)


def test_an_index_that_caught_up_holds_what_the_store_holds(opened: OpenCollection, put: Put) -> None:
    put(opened.store, "a", ["red fox", "blue fish"])
    put(opened.store, "b", ["green tea"])
    assert opened.catch_up() == opened.store.revision()
    put(opened.store, "a", ["red fox", "white cat", "black dog"])
    opened.store.delete_documents(["b"])
    assert opened.catch_up() == opened.store.revision()
    stored, keyword, dense = keys_of(opened)
    assert len(stored) == 3
    assert keyword == dense == stored
    assert opened.index.keyword.search(["blue"], 5, EVERYTHING).keys.tolist() == []
    assert len(opened.index.keyword.search(["white"], 5, EVERYTHING).keys) == 1


def test_catching_up_twice_writes_nothing(opened: OpenCollection, put: Put, analyzer: Analyzer) -> None:
    put(opened.store, "a", ["red fox"])
    opened.catch_up()
    recorder = Recorder(opened.index.keyword)
    assert sync.catch_up(recorder, opened.store, analyzer) == opened.store.revision()
    assert (recorder.applied, recorder.replaced) == ([], 0)


def test_the_log_is_followed_in_batches_that_name_each_chunk_once(
    opened: OpenCollection, put: Put, analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened.store, "first", ["zero"])
    opened.catch_up()
    for version in range(4):
        put(opened.store, "a", [f"text {version}", "always the same"])
    monkeypatch.setattr(sync, "BATCH_CHANGES", 3)
    recorder = Recorder(opened.index.keyword)
    sync.catch_up(recorder, opened.store, analyzer)
    assert len(recorder.applied) > 1
    for upserts, deletes, _ in recorder.applied:
        assert len(upserts) + len(deletes) <= 3
        assert not set(upserts) & set(deletes)
    assert recorder.applied[-1][2] == opened.store.revision()
    assert recorder.keys().tolist() == opened.store.chunk_keys().tolist()


def test_each_index_gets_only_what_it_wants(opened: OpenCollection, put: Put, analyzer: Analyzer) -> None:
    put(opened.store, "first", ["zero"])
    opened.catch_up()
    put(opened.store, "a", ["red fox"])
    keyword, dense = Recorder(opened.index.keyword), Recorder(opened.index.dense)
    for follower in (keyword, dense):
        sync.catch_up(follower, opened.store, analyzer)
    assert [(entry.terms, len(entry.vector)) for entry in keyword.entries] == [(["red", "fox"], 0)]
    assert [(entry.terms, len(entry.vector)) for entry in dense.entries] == [((), 16)]


def test_a_log_that_was_trimmed_leads_to_a_rebuild(opened: OpenCollection, put: Put, analyzer: Analyzer) -> None:
    put(opened.store, "a", ["red fox"])
    opened.catch_up()
    put(opened.store, "b", ["blue fish"])
    put(opened.store, "c", ["green tea"])
    opened.store.delete_documents(["a"])
    sql(opened, "DELETE FROM changes WHERE revision < (SELECT max(revision) FROM changes)")
    recorder = Recorder(opened.index.keyword)
    assert sync.catch_up(recorder, opened.store, analyzer) == opened.store.revision()
    assert recorder.replaced == 1
    assert recorder.keys().tolist() == opened.store.chunk_keys().tolist()


@pytest.mark.parametrize("written_first", [0, 9])
def test_an_index_ahead_of_a_restored_store_is_rebuilt(
    open_pool: Callable[..., OpenCollections], put: Put, tmp_path: Path, written_first: int
) -> None:
    pool = open_pool()
    pool.create("c")
    with pool.get("c") as opened:
        put(opened.store, "old", ["red fox"])
        opened.catch_up()
        backup = tmp_path / "backup.db"
        sql(opened, f"VACUUM INTO '{backup}'")
        put(opened.store, "new", ["blue fish"] * 3)
        opened.catch_up()
        folder = opened.folder
    pool.close()
    for leftover in folder.glob("collection.db*"):
        leftover.unlink()
    backup.rename(folder / "collection.db")
    with open_pool().get("c") as restored:
        # The same keys and revisions come again, for other chunks.
        put(restored.store, "newer", ["green tea", *(f"text {number}" for number in range(written_first))])
        restored.fresh()
        stored, keyword, dense = keys_of(restored)
        assert keyword == dense == stored
        assert len(stored) == 2 + written_first
        assert restored.index.keyword.search(["blue"], 5, EVERYTHING).keys.tolist() == []
        assert len(restored.index.keyword.search(["green"], 5, EVERYTHING).keys) == 1


def test_a_worn_index_is_rebuilt_when_it_next_follows(
    opened: OpenCollection, put: Put, analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened.store, "a", ["red fox"])
    opened.catch_up()
    put(opened.store, "b", ["blue fish"])
    recorder = Recorder(opened.index.keyword)
    monkeypatch.setattr(recorder, "is_worn", lambda: True, raising=False)
    sync.catch_up(recorder, opened.store, analyzer)
    assert recorder.replaced == 1
    assert recorder.revision() == opened.store.revision()


def test_another_writer_is_waited_for_as_long_as_allowed(opened: OpenCollection, put: Put, analyzer: Analyzer) -> None:
    put(opened.store, "a", ["red fox"])
    keyword = opened.index.keyword
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with keyword.writing():
            holding.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(10)
    assert sync.catch_up(keyword, opened.store, analyzer) == 0
    with pytest.raises(StoreBusy):
        sync.rebuild(keyword, opened.store, analyzer, wait_seconds=0.02)
    threading.Timer(0.05, release.set).start()
    assert sync.catch_up(keyword, opened.store, analyzer, wait_seconds=10) == opened.store.revision()
    thread.join()


def test_verify_names_what_each_index_lacks_and_has_too_much(opened: OpenCollection, put: Put) -> None:
    put(opened.store, "a", ["red fox", "blue fish"])
    opened.catch_up()
    assert opened.verify() == []
    revision = opened.store.revision()
    first, second = opened.store.found_chunks(opened.store.chunk_keys().tolist())
    with opened.index.keyword.writing():
        opened.index.keyword.apply([], [first.chunk_key], revision)
    with opened.index.dense.writing():
        foreign = IndexEntry(999, 1, (), np.ones(16, np.float32))
        opened.index.dense.apply([foreign], [second.chunk_key], revision)
    told = {(d["kind"], d["document_id"], d["chunk_id"]) for d in opened.verify()}
    assert told == {
        ("missing_in_index", "a", first.chunk_id),
        ("missing_in_index", "a", second.chunk_id),
        ("not_in_store", None, None),
    }
    assert any("dense" in d["detail"] and "999" in d["detail"] for d in opened.verify())
    opened.rebuild()
    assert opened.verify() == []


def test_verify_finds_no_difference_in_documents_written_meanwhile(opened: OpenCollection, put: Put) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            put(opened.store, f"d{number % 5}", [f"text {number}", "same"])
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert [opened.verify() for _ in range(3)] == [[], [], []]
    finally:
        stop.set()
        thread.join()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd"), st.lists(st.sampled_from("rstuvw"), min_size=1, max_size=5)),
        st.tuples(st.just("delete"), st.sets(st.sampled_from("abcd"), min_size=1), st.none()),
        st.tuples(st.just("follow"), st.none(), st.none()),
        st.tuples(st.just("reopen"), st.none(), st.none()),
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS)
def test_an_index_that_followed_equals_one_built_anew(
    operations: list[tuple[str, Any, Any]],
    tmp_path_factory: pytest.TempPathFactory,
    analyzer: Analyzer,
    put: Put,
    vector_of: Callable[[str], np.ndarray],
) -> None:
    from app.settings import Settings
    from app.stores.registry import create_store

    folder = tmp_path_factory.mktemp("collection")
    store = create_store(folder, Settings(data=folder))
    followed = create_index(folder, analyzer.signature)
    try:
        for verb, first, second in operations:
            if verb == "put":
                put(store, first, [f"{word} {place}" for place, word in enumerate(second)])
            elif verb == "delete":
                store.delete_documents(sorted(first))
            elif verb == "reopen":
                followed.close()
                followed = create_index(folder, analyzer.signature)
            else:
                catch_up_both(followed, store, analyzer)
        catch_up_both(followed, store, analyzer)
        built = create_index(tmp_path_factory.mktemp("built"), analyzer.signature)
        for follower in built.followers():
            sync.rebuild(follower, store, analyzer)
        keys = store.chunk_keys().tolist()
        for index in (followed, built):
            assert [follower.keys().tolist() for follower in index.followers()] == [keys, keys]
            assert {follower.revision() for follower in index.followers()} == {store.revision()}
        for word in "rstuvw":
            hits = [sorted(index.keyword.search([word], 99, EVERYTHING).keys.tolist()) for index in (followed, built)]
            assert hits[0] == hits[1]
            near = [index.dense.search(vector_of(f"{word} 0"), 3, EVERYTHING) for index in (followed, built)]
            assert near[0].keys.tolist() == near[1].keys.tolist()
            frequencies = [index.keyword.document_frequencies([word, "0"]) for index in (followed, built)]
            assert frequencies[0] == frequencies[1]
    finally:
        store.close()


def catch_up_both(index: CollectionIndex, store: CollectionStore, analyzer: Analyzer) -> None:
    for follower in index.followers():
        assert sync.catch_up(follower, store, analyzer, wait_seconds=5) == store.revision()
