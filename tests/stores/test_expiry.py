from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore


def test_documents_whose_time_is_over_are_told(store: SqliteStore, prepare: Callable[..., PreparedDocument]) -> None:
    for name, year in (("past", 2029), ("now", 2030), ("future", 2031), ("never", None)):
        ends = None if year is None else datetime(year, 1, 2, tzinfo=UTC)
        store.replace_document(replace(prepare(store, name), expires_at=ends))
    assert store.expired_documents(datetime(2030, 1, 2, tzinfo=UTC), 10) == ["past", "now"]
    assert store.expired_documents(datetime(2030, 1, 2, tzinfo=UTC), 1) == ["past"]
