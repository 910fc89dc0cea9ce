from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain import Document
from app.embedding_space import EmbeddingSpace
from app.errors import Reembedded, StoreBusy
from app.settings import Settings
from app.stores.port import PreparedDocument
from app.stores.sqlite import SqliteStore
from app.stores.upkeep import NextText

Put = Callable[..., Document]

PRESENT = EmbeddingSpace("test", "present", 16, tuple([1.0] + [0.0] * 15))
NEXT = EmbeddingSpace("test", "next", 24, tuple([0.0] * 23 + [1.0]))


def gather_next(store: SqliteStore) -> int:
    """Keep a next vector for each text that lacks one, and return how many did."""
    gathered, after = 0, 0
    while page := store.upkeep.lacking_texts(after, 2):
        store.upkeep.keep_next({each.text_hash: np.full(24, len(each.text), np.float32) for each in page})
        gathered += len(page)
        after = page[-1].chunk_key
    return gathered


def test_chunks_are_ordered_by_document_and_place(store: SqliteStore, put: Put) -> None:
    put(store, "first", ["a ", "b "])
    put(store, "second", ["c "])
    # Written later, its new chunk has the largest key and still belongs to the first document.
    put(store, "first", ["new ", "a ", "b "])
    keys, document_keys = store.upkeep.chunk_order()
    texts = [chunk.text for chunk in store.found_chunks(keys.tolist())]
    assert texts == ["new ", "a ", "b ", "c "]
    assert document_keys.tolist() == [1, 1, 1, 2]


def test_a_trimmed_log_keeps_its_newest_lines_and_its_revision(store: SqliteStore, put: Put) -> None:
    put(store, "d", [f"piece {number} " for number in range(20)])
    assert store.upkeep.trim_changes(5) == 15
    assert (store.revision(), store.oldest_revision(), len(store.changes(0, 100))) == (20, 15, 5)
    assert store.upkeep.trim_changes(5) == 0
    assert store.upkeep.trim_changes(1) == 4
    put(store, "e", ["one more "])
    assert (store.revision(), len(store.changes(0, 100))) == (21, 2)
    assert store.verify() == []


def test_what_was_deleted_is_in_no_file_after_a_compaction(store: SqliteStore, put: Put, tmp_path: Path) -> None:
    for number in range(200):
        put(store, f"d{number}", [f"quagmire {number} {piece} " * 20 for piece in range(4)], {"note": "quagmire"})
    store.delete_documents([f"d{number}" for number in range(0, 200, 2)])
    store.delete_documents([f"d{number}" for number in range(1, 200, 2)])
    before = store.stats().database_bytes
    store.upkeep.compact()
    assert store.stats().database_bytes < before / 2
    assert [path.name for path in tmp_path.iterdir() if b"quagmire" in path.read_bytes()] == []


def test_a_compaction_that_a_reader_holds_up_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, Settings(write_wait_seconds=0.2))
    store.register_document("d", title="", metadata={}, media_type="", filename=None)
    with store._database.reading(snapshot=True) as connection:
        connection.exec_driver_sql("SELECT count(*) FROM documents").scalar()
        with pytest.raises(StoreBusy):
            store.upkeep.compact()
    store.upkeep.compact()
    store.close()


def test_vectors_are_swapped_all_at_once_and_only_when_all_are_there(store: SqliteStore, put: Put) -> None:
    store.set_embedding_space(PRESENT)
    put(store, "d", ["a ", "bb ", "a "])
    put(store, "e", ["ccc "])
    assert store.upkeep.begin_next(NEXT) == NEXT
    assert store.upkeep.next_counts() == (0, 4)
    assert gather_next(store) == 3
    assert store.upkeep.next_counts() == (4, 4)
    put(store, "late", ["dddd "])
    assert not store.upkeep.adopt_next()
    assert store.embedding_space() == PRESENT
    # Begun again, it goes on with what is there.
    store.upkeep.begin_next(NEXT)
    assert gather_next(store) == 1
    revision = store.revision()
    following = store.upkeep.next_chunks(-1, 100, "context")
    assert store.upkeep.adopt_next()
    assert store.embedding_space() == NEXT
    assert not store.upkeep.adopt_next(), "nothing is left to adopt"
    present = store.all_chunks(-1, 100)
    assert [chunk.vector.tolist() for chunk in present] == [chunk.vector.tolist() for chunk in following]
    assert [chunk.vector[0] for chunk in present] == [2, 3, 2, 4, 5]
    assert store.revision() == revision + 1
    assert store.verify() == []


def test_the_last_texts_are_embedded_in_the_swap_and_told_to_the_index(store: SqliteStore, put: Put) -> None:
    store.set_embedding_space(PRESENT)
    put(store, "d", ["a "])
    store.upkeep.begin_next(NEXT)
    gather_next(store)
    put(store, "late", ["dddd "])
    revision = store.revision()
    asked: list[str] = []

    def embed(texts: Sequence[NextText]) -> dict[bytes, NDArray[np.float32]]:
        asked.extend(each.text for each in texts)
        return {each.text_hash: np.full(NEXT.dimensions, len(each.text), np.float32) for each in texts}

    assert store.upkeep.adopt_next(embed)
    assert asked == ["dddd "]
    late = store.all_chunks(-1, 100)[-1]
    assert late.vector[0] == 5
    assert (late.chunk_key, "upsert") in [(c.chunk_key, c.operation) for c in store.changes(revision, 10)]
    assert store.verify() == []


def test_vectors_of_a_third_space_are_forgotten(store: SqliteStore, put: Put) -> None:
    store.set_embedding_space(PRESENT)
    put(store, "d", ["a "])
    store.upkeep.begin_next(NEXT)
    gather_next(store)
    store.upkeep.begin_next(replace(NEXT, model="third"))
    assert store.upkeep.next_counts() == (0, 1)
    gather_next(store)
    store.upkeep.forget_next()
    assert not store.upkeep.adopt_next()
    assert store.embedding_space() == PRESENT


def test_vectors_of_the_space_before_cannot_be_written_after_a_swap(
    store: SqliteStore, put: Put, prepare: Callable[..., PreparedDocument]
) -> None:
    store.set_embedding_space(PRESENT)
    put(store, "d", ["a "])
    late = replace(prepare(store, "late", ["b "]), space=PRESENT)
    store.stage_vectors("job", {b"1" * 32: np.ones(16, np.float32)}, PRESENT)
    store.upkeep.begin_next(NEXT)
    gather_next(store)
    assert store.upkeep.adopt_next()
    with pytest.raises(Reembedded):
        store.replace_document(late)
    with pytest.raises(Reembedded):
        store.stage_vectors("job", {b"2" * 32: np.ones(16, np.float32)}, PRESENT)
    assert store.known_vectors([b"1" * 32, b"2" * 32]) == {}
    assert store.document("late").version == 0
