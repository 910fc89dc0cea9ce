import hashlib
from collections.abc import Callable

import numpy as np

from app.domain import Document
from app.stores.sqlite import SqliteStore


def text_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def test_vectors_are_known_by_text_while_live_or_staged(store: SqliteStore, put: Callable[..., Document]) -> None:
    def known(*texts: str) -> set[str]:
        found = store.known_vectors([text_hash(text) for text in texts])
        return {text for text in texts if text_hash(text) in found}

    put(store, "a", ["live "])
    batch = {text_hash(text): np.full(16, number, np.float32) for number, text in enumerate(["staged", "twice"])}
    store.stage_vectors("job_1", batch)
    store.stage_vectors("job_1", batch)
    store.stage_vectors("job_2", {text_hash("twice"): batch[text_hash("twice")]})

    assert known("live ", "staged", "twice", "unknown") == {"live ", "staged", "twice"}
    np.testing.assert_array_equal(store.known_vectors(list(batch))[text_hash("twice")], np.ones(16))
    store.drop_staged("job_1")
    assert known("live ", "staged", "twice") == {"live ", "twice"}
    store.delete_documents(["a"])
    assert known("live ") == set()


def test_more_hashes_than_one_statement_takes_are_looked_up(store: SqliteStore, put: Callable[..., Document]) -> None:
    put(store, "a", [f"piece {i} " for i in range(1203)])
    asked = [text_hash(f"piece {i} ") for i in range(1300)]
    assert set(store.known_vectors(asked)) == set(asked[:1203])
    assert store.known_vectors([]) == {}
