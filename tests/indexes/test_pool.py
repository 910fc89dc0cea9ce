import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from app.errors import NameTaken, NotFound, StoreDamaged
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.indexes.port import CollectionIndex
from app.indexes.registry import create_index
from app.stores.port import CollectionStore, Scope

EVERYTHING = Scope(None, None)
Put = Callable[[CollectionStore, str, Sequence[str]], None]
OpenPool = Callable[..., OpenCollections]


def count(opened: OpenCollection, term: str) -> int:
    return len(opened.index.keyword.search([term], 100, EVERYTHING).keys)


def test_a_collection_that_was_not_made_is_not_found(collections: OpenCollections, tmp_path: Path) -> None:
    for name in ("absent", "", ".", "..", "a/b", "../c"):
        with pytest.raises(NotFound), collections.get(name):
            pass
    assert list((tmp_path / "collections").iterdir()) == []


def test_a_new_collection_has_its_folders_and_is_empty(collections: OpenCollections, tmp_path: Path) -> None:
    collections.create("c")
    assert sorted(path.name for path in (tmp_path / "collections" / "c").iterdir()) == [
        "collection.db",
        "index",
        "originals",
    ]
    with collections.get("c") as opened:
        assert opened.folder == tmp_path / "collections" / "c"
        opened.fresh()
        assert count(opened, "word") == 0


def test_an_id_is_taken_once(collections: OpenCollections, tmp_path: Path, put: Put) -> None:
    collections.create("c")
    with collections.get("c") as opened:
        put(opened.store, "a", ["word"])
    with pytest.raises(NameTaken):
        collections.create("c")
    assert [path.name for path in (tmp_path / "collections").iterdir()] == ["c"]
    with collections.get("c") as opened:
        assert opened.store.document("a") is not None


def test_nothing_is_left_of_a_deleted_collection(collections: OpenCollections, tmp_path: Path, put: Put) -> None:
    collections.create("c")
    with collections.get("c") as opened:
        put(opened.store, "a", ["word"])
        opened.catch_up()
    collections.delete("c")
    assert list((tmp_path / "collections").iterdir()) == []
    with pytest.raises(NotFound), collections.get("c"):
        pass
    collections.delete("c")


def test_a_collection_deleted_in_use_does_not_come_back(collections: OpenCollections, tmp_path: Path, put: Put) -> None:
    collections.create("c")
    with collections.get("c") as opened:
        put(opened.store, "a", ["word"])
        opened.catch_up()
        collections.delete("c")
        with pytest.raises(NotFound):
            opened.rebuild()
    assert list((tmp_path / "collections").iterdir()) == []


def test_a_collection_that_another_process_deleted_is_not_found(open_pool: OpenPool, tmp_path: Path, put: Put) -> None:
    one, other = open_pool(), open_pool()
    one.create("c")
    with one.get("c") as opened:
        put(opened.store, "a", ["word"])
        opened.catch_up()
    other.delete("c")
    with pytest.raises(NotFound), one.get("c"):
        pass
    assert list((tmp_path / "collections").iterdir()) == []


def test_a_collection_that_another_process_made_is_found(open_pool: OpenPool, put: Put) -> None:
    one, other = open_pool(), open_pool()
    one.create("c")
    with other.get("c") as opened:
        put(opened.store, "a", ["word"])
    with one.get("c") as opened:
        opened.fresh()
        assert count(opened, "word") == 1


def test_what_a_crash_left_of_a_deletion_is_finished_or_undone_at_the_next_start(
    open_pool: OpenPool, tmp_path: Path
) -> None:
    folder = tmp_path / "collections"
    one = open_pool()
    for name in ("committed", "not_committed"):
        one.create(name)
        (folder / name).rename(folder / f".trash-{name}-1234")
    open_pool().recover(nullcontext({"not_committed"}))
    assert [path.name for path in folder.iterdir()] == ["not_committed"]
    with open_pool().get("not_committed") as opened:
        assert opened.verify() == []


def test_a_collection_that_is_not_put_in_place_leaves_nothing(open_pool: OpenPool, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), open_pool().making():
        raise ZeroDivisionError
    assert list((tmp_path / "collections").iterdir()) == []


def test_a_lost_store_is_never_replaced_by_an_empty_one(open_pool: OpenPool, tmp_path: Path) -> None:
    open_pool().create("c")
    database = tmp_path / "collections" / "c" / "collection.db"
    database.unlink()
    with pytest.raises(StoreDamaged), open_pool().get("c"):
        pass
    assert not database.exists()


def test_open_collections_are_shared_and_closed_when_others_are_used(open_pool: OpenPool) -> None:
    pool = open_pool(limit=2)
    for name in "abc":
        pool.create(name)
    with pool.get("a") as first, pool.get("a") as second:
        assert first is second
    with pool.get("a") as again:
        assert again is first
    with pool.get("b"), pool.get("c"):
        pass
    with pool.get("a") as later:
        assert later is not first


def test_none_in_use_is_closed(open_pool: OpenPool, put: Put) -> None:
    pool = open_pool(limit=1)
    for name in "abc":
        pool.create(name)
    with pool.get("a") as first:
        with pool.get("b"), pool.get("c"):
            pass
        put(first.store, "a", ["word"])
        first.fresh()
        assert count(first, "word") == 1
        with pool.get("a") as again:
            assert again is first


def test_threads_that_open_a_collection_at_once_open_it_once(open_pool: OpenPool) -> None:
    open_pool().create("c")
    opens: list[Path] = []

    def open_index(folder: Path, signature: str) -> CollectionIndex:
        opens.append(folder)
        return create_index(folder, signature)

    pool = open_pool(open_index=open_index)
    barrier = threading.Barrier(6)
    found: list[OpenCollection] = []

    def use() -> None:
        barrier.wait()
        with pool.get("c") as opened:
            found.append(opened)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opens) == 1
    assert len(set(map(id, found))) == 1


def test_an_opening_that_fails_can_be_tried_again(open_pool: OpenPool) -> None:
    open_pool().create("c")
    failures = [OSError("no")]

    def open_index(folder: Path, signature: str) -> CollectionIndex:
        if failures:
            raise failures.pop()
        return create_index(folder, signature)

    pool = open_pool(open_index=open_index)
    with pytest.raises(OSError, match="no"), pool.get("c"):
        pass
    with pool.get("c") as opened:
        assert opened.verify() == []


def test_a_collection_stays_open_for_who_comes_next_until_it_is_idle(collections: OpenCollections, put: Put) -> None:
    collections.create("c")
    with collections.get("c") as first:
        put(first.store, "a", ["word"])
        assert collections.close_idle(0) == 0
    with collections.get("c") as second:
        assert second is first
    assert collections.close_idle(3600) == 0
    assert collections.close_idle(0) == 1
    with collections.get("c") as third:
        assert third is not first
        assert third.store.document("a") is not None


def test_a_look_that_keeps_nothing_open_closes_only_what_nobody_else_uses(collections: OpenCollections) -> None:
    collections.create("c")
    with collections.get("c", keep=False) as looked:
        pass
    with collections.get("c") as used:
        assert used is not looked
        with collections.get("c", keep=False) as beside:
            assert beside is used
    with collections.get("c", keep=False) as again:
        assert again is used
    with collections.get("c") as after:
        assert after is used
