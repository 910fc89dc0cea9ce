from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from app.filters import Condition, Operator
from app.settings import Settings
from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore

SECOND = timedelta(seconds=1)
END = datetime(2090, 1, 2, tzinfo=UTC)


class Clock:
    now = END - SECOND

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock, prepare: Callable[..., PreparedDocument]) -> Iterator[SqliteStore]:
    """A store with one document that ends, one that does not, and one that is not ready."""
    store = SqliteStore(tmp_path, Settings(), clock=clock)
    for name, ends in (("ends", END), ("stays", None)):
        store.replace_document(replace(prepare(store, name), expires_at=ends))
    prepare(store, "pending")
    yield store
    store.close()


def listed(store: SqliteStore, max_age: timedelta | None = None) -> list[str]:
    wanted = store.without_ended(None, max_age)
    return [document.id for document in store.list_documents(wanted, limit=9, cursor=None).data]


def found(store: SqliteStore, max_age: timedelta | None = None) -> int | None:
    keys = store.scope(store.without_ended(None, max_age), None).document_keys
    return None if keys is None else len(keys)


def test_documents_whose_time_is_over_are_told(store: SqliteStore, prepare: Callable[..., PreparedDocument]) -> None:
    for name, year in (("past", 2029), ("now", 2030), ("future", 2031), ("never", None)):
        ends = None if year is None else datetime(year, 1, 2, tzinfo=UTC)
        store.replace_document(replace(prepare(store, name), expires_at=ends))
    assert store.expired_documents(datetime(2030, 1, 2, tzinfo=UTC), 10) == ["past", "now"]
    assert store.expired_documents(datetime(2030, 1, 2, tzinfo=UTC), 1) == ["past"]


def test_a_document_is_hidden_from_the_second_at_which_it_ends(timed: SqliteStore, clock: Clock) -> None:
    assert listed(timed) == ["ends", "stays", "pending"]
    # Nothing is over, so that a search is not narrowed at all.
    assert found(timed) is None
    clock.now = END
    assert listed(timed) == ["stays", "pending"]
    assert found(timed) == 1
    stays = Condition("$document_id", Operator.IN, ("stays", "ends"))
    assert len(timed.scope(timed.without_ended(stays, None), None).document_keys) == 1
    assert timed.scope(timed.without_ended(None, None), ["ends"]).is_empty
    timed.update_document("ends", etag="", title="", metadata={}, expires_at=END + SECOND)
    assert listed(timed) == ["ends", "stays", "pending"]


def test_a_document_is_hidden_when_it_has_not_changed_for_too_long(timed: SqliteStore, clock: Clock) -> None:
    clock.now = timed.document("stays").updated_at + timedelta(days=1)
    assert listed(timed, timedelta(days=1) + SECOND) == ["ends", "stays", "pending"]
    assert listed(timed, timedelta(days=1)) == ["pending"]
    assert found(timed, timedelta(days=1)) == 0


@pytest.mark.parametrize("max_age", [None, SECOND])
def test_what_is_over_is_looked_up_in_indexes(timed: SqliteStore, max_age: timedelta | None) -> None:
    statements: list[str] = []
    with timed._database.reading() as connection:
        engine = connection.engine

    def listen(*given: Any) -> None:
        statements.append(given[2])

    event.listen(engine, "before_cursor_execute", listen)
    timed.without_ended(None, max_age)
    event.remove(engine, "before_cursor_execute", listen)
    with timed._database.reading() as connection:
        for asked in statements:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", (1,) * asked.count("?"))
            steps = [step.detail for step in plan]
            assert not [step for step in steps if step.startswith("SCAN documents")], steps
            assert any(
                "USING COVERING INDEX ix_documents_" in step or "USING INDEX ix_documents_" in step for step in steps
            )
