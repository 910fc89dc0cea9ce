from collections.abc import Callable
from typing import Any

import pytest

from app.stores import versions
from app.stores.sqlite import SqliteStore


def test_the_history_is_read_by_the_line_and_only_its_latest_lines_stay(
    store: SqliteStore, put: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "MOST_LINES", 3)
    for number in range(1, 7):
        put(store, "a", [f"text {number} "])
    assert [line.version for line in store.versions("a", limit=10)] == [6, 5, 4]
    assert [line.version for line in store.versions("a", limit=1, before=6)] == [5]
    assert store.versions("b", limit=10) == []
