"""A collection's log is a ring of its own, and what was cleared does not come back."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.principal import Role
from app.catalog.query_log import LoggedHit, LoggedQuery, Operation, QueryLog, keeps_queries
from app.errors import InvalidCursor

MOST = 5


@pytest.fixture
def query_log(database: Database, clock: Any) -> QueryLog:
    return QueryLog(database, most=MOST, clock=clock)


def asked(collection: Collection, number: int, created_at: datetime, **members: Any) -> LoggedQuery:
    query = f"question {number}"
    made = LoggedQuery(
        id=f"qry_{collection.name}_{number}",
        collection_id=collection.id,
        created_at=created_at,
        operation=Operation.SEARCH,
        query=query,
        query_characters=len(query),
        key_id=None,
        mode="hybrid",
        options={"top_k": 3},
        hit_count=1,
        hits=(LoggedHit(1, "chk_1", "leave-2026", 0.5),),
        degraded=("dense",),
        warnings=("no_query_terms",),
        total_ms=1.5,
        request_id="req_1",
    )
    return replace(made, **members)


def ids(query_log: QueryLog, collection: Collection, **asked_for: Any) -> list[str]:
    return [entry.id.rpartition("_")[2] for entry in query_log.list(collection.id, limit=200, **asked_for)[0]]


def test_an_entry_is_read_as_it_was_written(query_log: QueryLog, handbook: Collection, clock: Any) -> None:
    entry = asked(handbook, 1, clock())
    query_log.write([entry])
    [read], cursor = query_log.list(handbook.id, limit=10)
    assert replace(read, degraded=tuple(read.degraded), warnings=tuple(read.warnings)) == entry
    assert cursor is None


def test_the_oldest_go_first_whatever_the_order_in_which_they_are_written(
    query_log: QueryLog, handbook: Collection, recipes: Collection, clock: Any
) -> None:
    now = clock()
    query_log.write([asked(recipes, 0, now)])
    late = [asked(handbook, number, now + timedelta(seconds=number)) for number in (3, 9, 5)]
    early = [asked(handbook, number, now + timedelta(seconds=number)) for number in (4, 1, 8, 2, 7)]
    query_log.write(late)
    query_log.write(early)
    assert ids(query_log, handbook) == ["9", "8", "7", "5", "4"]
    assert ids(query_log, recipes) == ["0"]


def test_entries_of_one_moment_are_bounded_too(query_log: QueryLog, handbook: Collection, clock: Any) -> None:
    query_log.write([asked(handbook, number, clock()) for number in range(9)])
    assert len(ids(query_log, handbook)) == MOST


def test_pages_meet_and_a_list_can_be_narrowed(query_log: QueryLog, handbook: Collection, clock: Any) -> None:
    now = clock()
    query_log.write(
        asked(
            handbook,
            number,
            now + timedelta(seconds=number),
            operation=Operation.ASK if number % 2 else Operation.SEARCH,
        )
        for number in range(4)
    )
    first, cursor = query_log.list(handbook.id, limit=3)
    rest, end = query_log.list(handbook.id, limit=3, cursor=cursor)
    assert [entry.query for entry in (*first, *rest)] == [f"question {number}" for number in (3, 2, 1, 0)]
    assert end is None
    assert ids(query_log, handbook, operation=Operation.ASK) == ["3", "1"]
    assert ids(query_log, handbook, since=now + timedelta(seconds=2)) == ["3", "2"]
    with pytest.raises(InvalidCursor):
        query_log.list(handbook.id, limit=3, cursor="x")


def test_what_was_asked_before_a_log_was_cleared_is_not_written_afterwards(
    query_log: QueryLog, handbook: Collection, recipes: Collection, clock: Any
) -> None:
    before = [asked(collection, 1, clock()) for collection in (handbook, recipes)]
    query_log.write([asked(handbook, 0, clock())])
    for _ in range(2):
        clock.pass_time(1)
        query_log.clear(handbook.id)
    clock.pass_time(1)
    query_log.write([*before, asked(handbook, 2, clock())])
    assert ids(query_log, handbook) == ["2"]
    assert ids(query_log, recipes) == ["1"]


def test_an_erased_past_takes_the_log_along(
    query_log: QueryLog, collections: Collections, handbook: Collection, recipes: Collection, clock: Any
) -> None:
    waiting = asked(handbook, 1, clock())
    query_log.write([asked(handbook, 0, clock()), asked(recipes, 0, clock())])
    collections.erase_past(handbook, lambda _: frozenset())
    query_log.write([waiting])
    assert ids(query_log, handbook) == []
    assert ids(query_log, recipes) == ["0"]


def test_processes_that_write_at_once_keep_one_ring(
    database: Database, tmp_path: Path, handbook: Collection, clock: Any
) -> None:
    other = Database(tmp_path / "catalog.db")
    logs = [QueryLog(each, most=MOST) for each in (database, other)]
    entries = [asked(handbook, number, clock() + timedelta(seconds=number)) for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: logs[number % 2].write([entries[number]]), range(40)))
    assert ids(logs[0], handbook) == ids(logs[1], handbook) == ["39", "38", "37", "36", "35"]
    other.close()


def test_a_collection_that_is_deleted_takes_its_log_along_and_does_not_hold_others_up(
    query_log: QueryLog,
    collections: Collections,
    database: Database,
    handbook: Collection,
    recipes: Collection,
    clock: Any,
) -> None:
    query_log.clear(handbook.id)
    clock.pass_time(1)
    query_log.write([asked(handbook, 1, clock())])
    collections.delete("handbook")
    query_log.clear(handbook.id)
    query_log.write([asked(handbook, 2, clock()), asked(recipes, 2, clock())])
    assert ids(query_log, recipes) == ["2"]
    with database.read() as connection:
        for table, left in (("queries", 1), ("cleared_query_logs", 0)):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == left


@pytest.mark.parametrize(
    ("settings", "role", "kept"),
    [
        ({}, Role.ASK, True),
        ({}, Role.ADMIN, True),
        ({}, Role.SEARCH, False),
        ({"query_log": {"enabled": True, "search_keys": True}}, Role.SEARCH, True),
        ({"query_log": {"enabled": False, "search_keys": True}}, Role.SEARCH, False),
        ({"query_log": {"enabled": False, "search_keys": False}}, Role.ADMIN, False),
    ],
)
def test_the_settings_of_the_collection_say_whose_queries_are_kept(
    settings: dict[str, Any], role: Role, kept: bool
) -> None:
    assert keeps_queries(settings, role) is kept
