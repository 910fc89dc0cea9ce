from collections.abc import Callable

import pytest

from app.domain import Document
from app.errors import InvalidRequest
from app.filters import Condition, Operator
from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]


def test_pages_of_a_list_are_stable_while_documents_are_added(store: SqliteStore, put: Put) -> None:
    for i in range(5):
        put(store, f"d{i}", ["x "], {"even": i % 2 == 0})
    page = store.list_documents(None, limit=2, cursor=None)
    assert [document.id for document in page.data] == ["d0", "d1"]
    store.delete_documents(["d1"])
    put(store, "new")
    page = store.list_documents(None, limit=4, cursor=page.next_cursor)
    assert [document.id for document in page.data] == ["d2", "d3", "d4", "new"]
    assert page.next_cursor is None


def test_a_filtered_list_has_full_pages(store: SqliteStore, put: Put) -> None:
    for i in range(9):
        put(store, f"d{i}", ["x "], {"rest": i % 3})
    wanted = Condition("rest", Operator.EQ, 0)
    page = store.list_documents(wanted, limit=2, cursor=None)
    assert [document.id for document in page.data] == ["d0", "d3"]
    page = store.list_documents(wanted, limit=2, cursor=page.next_cursor)
    assert ([document.id for document in page.data], page.next_cursor) == (["d6"], None)


def test_a_list_shows_documents_in_work_by_state_and_filter(
    store: SqliteStore, put: Put, prepare: Callable[..., PreparedDocument]
) -> None:
    put(store, "ready", ["x "], {"x": 1})
    prepare(store, "pending", ["x "], {"x": 1})
    prepare(store, "other")
    x = Condition("x", Operator.EXISTS, True)

    def listed(scope_filter: Condition | None, *states: str) -> list[str]:
        found = store.list_documents(scope_filter, limit=10, cursor=None, states=states)
        return [document.id for document in found.data]

    assert listed(x) == ["ready", "pending"]
    assert listed(x, "pending") == ["pending"]
    assert listed(None, "pending", "failed") == ["pending", "other"]
    assert listed(None, "failed") == []


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "é", "AAAAAAAAAAIAAAAA", "9" * 500])
def test_a_cursor_that_no_list_returned_is_refused(store: SqliteStore, cursor: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        store.list_documents(None, limit=2, cursor=cursor)
    assert refused.value.errors[0].pointer == "query:cursor"
