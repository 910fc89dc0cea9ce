"""Limits of a collection are held where it is written, so nothing that happens at the same time goes beyond them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.domain import Document
from app.errors import QuotaExceeded
from app.stores.port import PreparedDocument
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]


def register(store: SqliteStore, document_id: str, most: int | None) -> bool:
    try:
        store.register_document(
            document_id, title="", metadata={}, media_type="text/plain", filename=None, most_documents=most
        )
    except QuotaExceeded:
        return False
    return True


def test_registrations_that_come_together_stay_within_the_limit(store: SqliteStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        registered = list(pool.map(lambda number: register(store, f"d{number}", 5), range(20)))
    assert sum(registered) == 5
    assert sum(store.stats().documents.values()) == 5
    assert register(store, f"d{registered.index(True)}", 5), "one that is known needs no room"
    assert register(store, "another", None)


def test_chunks_beyond_the_limit_leave_the_version_before(
    store: SqliteStore, prepare: Callable[..., PreparedDocument], put: Put
) -> None:
    put(store, "a", ["one ", "two "])
    put(store, "b", ["one "])
    with pytest.raises(QuotaExceeded) as refused:
        store.replace_document(replace(prepare(store, "b", ["x ", "y ", "z "]), most_chunks=4))
    assert refused.value.extra == {"quota": "chunks", "limit": 4, "used": 2, "needed": 3}
    assert store.text("b", 0, None) == "one "
    store.replace_document(replace(prepare(store, "b", ["x ", "y "]), most_chunks=4))
    store.replace_document(replace(prepare(store, "a", ["x ", "y "]), most_chunks=4))
    assert store.stats().chunks == 4
    assert store.verify() == []
