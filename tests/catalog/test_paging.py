import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.api_keys import ApiKeys
from app.catalog.collections import Collections
from app.catalog.paging import NewestFirst
from app.catalog.tables import collections as table
from app.errors import InvalidRequest


def test_pages_join_to_the_whole_and_stay_so_while_rows_are_added(collections: Collections, clock: Any) -> None:
    names = [f"c{number:02}" for number in range(11)]
    for number, name in enumerate(names):
        collections.create(name, settings={})
        # Several collections of one moment, so that the id has to decide.
        clock.pass_time(number % 3)
    seen: list[str] = []
    cursor = None
    for page in range(20):
        found, cursor = collections.list(limit=3, cursor=cursor)
        seen += [collection.name for collection in found]
        collections.create(f"later-{page}", settings={})
        if cursor is None:
            break
    assert sorted(seen) == names
    assert len(seen) == len(set(seen))


def test_the_last_page_has_no_cursor(collections: Collections) -> None:
    for name in ("a", "b", "c"):
        collections.create(name, settings={})
    first, cursor = collections.list(limit=2)
    assert len(first) == 2
    assert cursor is not None
    second, cursor = collections.list(limit=2, cursor=cursor)
    assert len(second) == 1
    assert cursor is None
    assert collections.list(limit=3)[1] is None


def test_a_cursor_of_another_list_is_refused(collections: Collections, api_keys: ApiKeys) -> None:
    for name in ("a", "b"):
        collections.create(name, settings={})
    _, cursor = collections.list(limit=1)
    with pytest.raises(InvalidRequest) as refused:
        api_keys.list(None, limit=1, cursor=cursor)
    assert refused.value.code == "invalid_cursor"
    assert refused.value.errors[0].pointer == "query:cursor"


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "%%%",
        "ä",
        "AAAA",
        _encoded(None),
        _encoded([]),
        _encoded(["collections", 5, "col_1"]),
        _encoded(["collections", "yesterday", "col_1"]),
        _encoded(["collections", "2030-01-01T00:00:00", "col_1"]),
        _encoded(["collections", "2030-01-01T00:00:00+00:00", 7]),
        _encoded(["collections", "2030-01-01T00:00:00+00:00"]),
    ],
)
def test_what_is_no_cursor_is_refused(collections: Collections, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        collections.list(limit=1, cursor=cursor)


@given(st.text())
def test_any_text_is_a_cursor_of_ours_or_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        NewestFirst(table)._decode(text)
