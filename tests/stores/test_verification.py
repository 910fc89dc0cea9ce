from collections.abc import Callable
from dataclasses import replace

import pytest

from app.domain import Chunk, Document
from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]


# The sound document holds chunk 1, the damaged one chunks 2 to 4.
@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        ("UPDATE chunks SET text = 'x ' WHERE key = 3", {"chunk_text", "vector"}),
        ("UPDATE chunks SET start = start + 1 WHERE key = 3", {"chunk_text"}),
        ("UPDATE chunks SET context = 'x' WHERE key = 3", {"vector"}),
        ("DELETE FROM vectors WHERE chunk_key = 3", {"vector"}),
        ("UPDATE vectors SET vector = x'' WHERE chunk_key = 3", {"vector"}),
        ("DELETE FROM chunks WHERE key = 3", {"chunks", "change_log"}),
        ("DELETE FROM texts WHERE document_key = 2", {"text", "chunk_text"}),
        ("UPDATE attributes SET value = 'it' WHERE field = 'team'", {"attributes"}),
        ("DELETE FROM attributes WHERE field = '$document_id' AND document_key = 2", {"attributes"}),
        ("INSERT INTO changes (chunk_key, operation) VALUES (3, 'delete')", {"change_log"}),
        ("DELETE FROM changes WHERE chunk_key = 3", {"change_log"}),
    ],
)
def test_each_kind_of_damage_is_found_and_named(store: SqliteStore, put: Put, damage: str, kinds: set[str]) -> None:
    put(store, "sound", ["one "])
    put(store, "d", ["a ", "b ", "c "], {"team": "hr", "tags": ["x"], "when": "2024-01-01"})
    assert store.verify() == []
    with store._database.writing() as connection:
        connection.exec_driver_sql(damage)
    found = store.verify()
    assert {difference["kind"] for difference in found} == kinds
    assert {difference["document_id"] for difference in found} <= {"d", None}
    assert {difference["chunk_id"] for difference in found} <= {"c2", "c3", "c4", None}
    assert all(difference["document_id"] or difference["chunk_id"] for difference in found)


def test_a_damaged_file_is_told(store: SqliteStore, put: Put) -> None:
    put(store, "d", [f"piece {i} " for i in range(50)])
    with store._database.writing() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        connection.exec_driver_sql(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'pages') "
            "WHERE name = 'ix_vectors_text_hash'"
        )
        connection.exec_driver_sql("PRAGMA writable_schema = RESET")
    assert "damaged_file" in [difference["kind"] for difference in store.verify()]


def test_a_trimmed_log_is_no_difference(store: SqliteStore, put: Put) -> None:
    put(store, "d", ["a ", "b "])
    put(store, "e", ["a ", "b "])
    with store._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM changes WHERE revision < 3")
    assert store.oldest_revision() == 2
    assert store.verify() == []


# The enhanced document holds the children 1 to 3, the first two in parent 4.
@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        ("UPDATE chunks SET text = 'x ' WHERE key = 4", {"chunk_text"}),
        ("UPDATE chunks SET parent_key = 3 WHERE key = 1", {"parent"}),
        ("DELETE FROM chunks WHERE key = 4", {"parent", "change_log"}),
        ("UPDATE content_vectors SET text_hash = x'00' WHERE chunk_key = 2", {"vector"}),
        ("DELETE FROM changes WHERE chunk_key = 4", {"change_log"}),
    ],
)
def test_damage_of_parents_and_of_vectors_beside_the_first_is_named(
    store: SqliteStore, prepare: Callable[..., PreparedDocument], damage: str, kinds: set[str]
) -> None:
    prepared = prepare(store, "d", ["a ", "b ", "c "])
    children = [replace(chunk, context="T", parent=3 if chunk.ordinal < 2 else None) for chunk in prepared.chunks]
    parent = Chunk(3, 0, 4, "a b ", 4, kind="parent")
    store.replace_document(replace(prepared, chunks=[*children, parent], content_vectors=prepared.vectors[::-1]))
    assert store.verify() == []
    with store._database.writing() as connection:
        connection.exec_driver_sql(damage)
    assert {difference["kind"] for difference in store.verify()} == kinds
