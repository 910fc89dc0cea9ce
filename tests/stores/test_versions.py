from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.settings import Settings
from app.stores.sqlite import SqliteStore


def test_the_history_is_read_by_the_line_and_only_its_latest_lines_stay(
    tmp_path: Path, put: Callable[..., Any]
) -> None:
    store = SqliteStore(tmp_path, Settings(max_version_lines=3))
    for number in range(1, 7):
        put(store, "a", [f"text {number} "])
    assert [line.version for line in store.versions("a", limit=10)] == [6, 5, 4]
    assert [line.version for line in store.versions("a", limit=1, before=6)] == [5]
    assert store.versions("b", limit=10) == []
    store.close()
