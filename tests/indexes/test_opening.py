import logging
import threading
from collections.abc import Callable, Sequence

import pytest

from app.errors import Unavailable
from app.indexes import opening
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.stores.port import CollectionStore, Scope

EVERYTHING = Scope(None, None)
Put = Callable[[CollectionStore, str, Sequence[str]], None]
OpenPool = Callable[..., OpenCollections]


def count(opened: OpenCollection, term: str) -> int:
    return len(opened.index.keyword.search([term], 100, EVERYTHING).keys)


def test_a_search_finds_what_was_committed_before_it(opened: OpenCollection, put: Put) -> None:
    for number in range(1, 6):
        put(opened.store, f"d{number}", [f"word {number}"])
        opened.fresh()
        assert count(opened, "word") == number
        assert len(opened.index.dense.keys()) == number


def test_many_searches_follow_the_log_in_one_thread(
    opened: OpenCollection, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened.store, "a", ["word"] * 3)
    threads_seen: set[int] = set()
    plain = opening.sync.catch_up

    def catch_up(*arguments: object, **named: object) -> int:
        threads_seen.add(threading.get_ident())
        return plain(*arguments, **named)

    monkeypatch.setattr(opening.sync, "catch_up", catch_up)
    searches = [threading.Thread(target=opened.fresh) for _ in range(8)]
    for search in searches:
        search.start()
    for search in searches:
        search.join()
    assert count(opened, "word") == 3
    assert threads_seen.isdisjoint({search.ident for search in searches})


def test_a_search_goes_on_with_the_index_that_another_process_is_writing(
    opened: OpenCollection, open_pool: OpenPool, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened.store, "a", ["word"])
    opened.catch_up()
    put(opened.store, "b", ["word"])
    with open_pool().get("c") as other, other.index.keyword.writing() as granted, monkeypatch.context() as patch:
        assert granted
        patch.setattr(opening, "SEARCH_WAIT_SECONDS", 0.2)
        opened.fresh()
        assert count(opened, "word") == 1
        assert len(opened.index.dense.keys()) == 2
    opened.fresh()
    assert count(opened, "word") == 2


def test_a_search_in_an_index_that_is_being_built_for_the_first_time_is_unavailable(
    opened: OpenCollection, open_pool: OpenPool, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened.store, "a", ["word"])
    with open_pool().get("c") as other, other.index.keyword.writing(), monkeypatch.context() as patch:
        patch.setattr(opening, "SEARCH_WAIT_SECONDS", 0.2)
        with pytest.raises(Unavailable) as refusal:
            opened.fresh()
    assert refusal.value.retry_after
    opened.fresh()
    assert count(opened, "word") == 1


def test_an_index_that_cannot_follow_is_logged_and_searched_as_it_is(
    opened: OpenCollection, put: Put, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put(opened.store, "a", ["word"])
    opened.fresh()
    put(opened.store, "b", ["word"])
    monkeypatch.setattr(opening.sync, "catch_up", lambda *_, **__: 1 / 0)
    with caplog.at_level(logging.ERROR):
        opened.fresh()
    assert count(opened, "word") == 1
    assert "cannot follow" in caplog.text


def test_an_index_folder_that_was_removed_is_built_again(opened: OpenCollection, put: Put) -> None:
    import shutil

    put(opened.store, "a", ["word", "other"])
    opened.catch_up()
    shutil.rmtree(opened.folder / "index")
    opened.fresh()
    assert count(opened, "word") == 1
    put(opened.store, "b", ["word"])
    opened.fresh()
    assert count(opened, "word") == 2
    assert opened.verify() == []


def test_following_and_rebuilding_tell_how_far_they_are(
    collections: OpenCollections, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.indexes.sync.BATCH_CHANGES", 4)
    collections.create("c")
    with collections.get("c") as opened:
        put(opened.store, "a", [f"word{number} " for number in range(10)])
        told: list[tuple[int, int]] = []
        opened.catch_up(lambda done, total: told.append((done, total)))
        assert told == sorted(told)
        assert told[-1] == (20, 20), "ten changes in each of two indexes"
        told.clear()
        opened.rebuild(lambda done, total: told.append((done, total)))
        assert [done for done, _ in told] == [4, 8, 10, 14, 18, 20]


def test_a_rebuild_that_is_ended_halfway_leaves_the_old_index_answering(
    collections: OpenCollections, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.indexes.sync.BATCH_CHANGES", 4)
    collections.create("c")

    def end(done: int, _total: int) -> None:
        if done > 12:
            raise ZeroDivisionError

    with collections.get("c") as opened:
        put(opened.store, "a", ["word "] * 10)
        opened.catch_up()
        with pytest.raises(ZeroDivisionError):
            opened.rebuild(end)
        assert count(opened, "word") == 10
        put(opened.store, "b", ["word "])
        opened.fresh()
        assert count(opened, "word") == 11
        assert opened.verify() == []
        opened.rebuild()
        assert count(opened, "word") == 11
