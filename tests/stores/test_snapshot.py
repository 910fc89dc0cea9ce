"""A copy of a store is one moment of it, without what was deleted; a file from elsewhere is checked."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.domain import Document
from app.embedding_space import EmbeddingSpace
from app.errors import DamagedArchive, StorageFull, UnsupportedArchive, UnusableArchive
from app.settings import Settings
from app.stores import snapshot
from app.stores.adoption import adopt_store
from app.stores.driver import sqlite_driver
from app.stores.snapshot import check_database
from app.stores.sqlite import DATABASE_NAME, SqliteStore

Put = Callable[..., Document]
DIMENSIONS = 16


@pytest.fixture(autouse=True)
def space(store: SqliteStore) -> None:
    store.set_embedding_space(EmbeddingSpace("hashed", "hashed", DIMENSIONS))


def run(file: Path, *statements: str) -> None:
    with closing(sqlite_driver().connect(str(file), isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def adopted(folder: Path, file: Path) -> SqliteStore:
    folder.mkdir()
    SqliteStore(folder, Settings()).close()
    adopt_store(folder, file, Settings())
    return SqliteStore(folder, Settings(), creates=False)


def test_a_copy_taken_while_documents_are_written_is_one_moment(tmp_path: Path, store: SqliteStore, put: Put) -> None:
    done = threading.Event()
    written = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            put(store, f"d{number % 40}", [f"version {number} " * 50] * 20)
            number += 1
            if number == 20:
                written.set()

    writer = threading.Thread(target=write)
    writer.start()
    written.wait(30)
    files = [tmp_path / f"copy{number}" for number in range(3)]
    for file in files:
        store.snapshot(file)
    done.set()
    writer.join()
    for number, file in enumerate(files):
        copy = adopted(tmp_path / f"folder{number}", file)
        assert copy.verify() == []
        assert copy.stats().documents["ready"] >= 20
        copy.close()


def test_a_copy_holds_every_document_chunk_and_vector_under_its_key(
    tmp_path: Path, store: SqliteStore, put: Put
) -> None:
    for name in ("a", "gone", "b"):
        put(store, name, [f"text of {name} ", "and more"])
    store.delete_documents(["gone"])
    store.snapshot(tmp_path / "copy")
    copy = adopted(tmp_path / "folder", tmp_path / "copy")
    assert [copy.document(name) for name in "ab"] == [store.document(name) for name in "ab"]
    keys = store.chunk_keys().tolist()
    assert copy.chunk_keys().tolist() == keys
    assert copy.found_chunks(keys) == store.found_chunks(keys)
    assert copy.revision() == store.revision()
    assert copy.verify() == []
    put(copy, "c")
    assert min(set(copy.chunk_keys().tolist()) - set(keys)) > max(keys)
    copy.close()


def test_nothing_that_was_deleted_or_is_in_work_comes_along(tmp_path: Path, store: SqliteStore, put: Put) -> None:
    put(store, "kept")
    put(store, "gone", ["the word xylograph "])
    store.delete_documents(["gone"])
    store.register_document("waiting", title="zeppelin", metadata={}, media_type="text/plain", filename=None)
    vector = store.indexed_chunks(store.chunk_keys().tolist())[0].vector
    store.stage_vectors("job", {b"\x07" * 32: vector})
    store.snapshot(tmp_path / "whole")
    store.snapshot(tmp_path / "copy", without_work=True)
    assert b"xylograph" not in (tmp_path / "whole").read_bytes()
    assert b"zeppelin" in (tmp_path / "whole").read_bytes()
    assert b"zeppelin" not in (tmp_path / "copy").read_bytes()
    copy = adopted(tmp_path / "folder", tmp_path / "copy")
    assert copy.known_vectors([b"\x07" * 32]) == {}
    assert copy.document("waiting") is None
    assert copy.document("kept") == store.document("kept")
    copy.close()


def test_a_copy_is_one_file_that_only_its_owner_reads(tmp_path: Path, store: SqliteStore, put: Put) -> None:
    put(store, "a")
    (tmp_path / "copies").mkdir()
    store.snapshot(tmp_path / "copies" / "one")
    (only,) = (tmp_path / "copies").iterdir()
    assert only.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("statements", "error"),
    [
        (["CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM documents; END"], UnusableArchive),
        (["CREATE VIEW v AS SELECT 1"], UnusableArchive),
        (["CREATE VIRTUAL TABLE v USING fts5(x)"], UnusableArchive),
        (["CREATE TABLE more (x)"], UnusableArchive),
        (["ALTER TABLE documents ADD COLUMN more"], UnusableArchive),
        (["DROP INDEX ix_chunks_parent_key"], UnusableArchive),
        (["UPDATE alembic_version SET version_num = '9999'"], UnsupportedArchive),
        (["DROP TABLE alembic_version"], DamagedArchive),
        (["PRAGMA foreign_keys = OFF", "UPDATE chunks SET document_key = 12345"], DamagedArchive),
        (["UPDATE documents SET metadata = '{'"], DamagedArchive),
        (["UPDATE documents SET metadata = '[1]'"], DamagedArchive),
        (["UPDATE versions SET extraction = '1'"], DamagedArchive),
        (["UPDATE documents SET warnings = '{}'"], DamagedArchive),
        (["UPDATE documents SET content_hash = '../../../catalog.db'"], DamagedArchive),
        (["UPDATE versions SET content_hash = upper(content_hash) || 'X'"], DamagedArchive),
        (["UPDATE vectors SET vector = x'00'"], DamagedArchive),
        (["UPDATE embedding_space SET dimensions = 3"], DamagedArchive),
        (["DELETE FROM embedding_space"], DamagedArchive),
    ],
)
def test_a_file_with_foreign_content_is_refused(
    tmp_path: Path, store: SqliteStore, put: Put, statements: list[str], error: type[Exception]
) -> None:
    put(store, "a")
    store.snapshot(tmp_path / "copy")
    run(tmp_path / "copy", *statements)
    with pytest.raises(error):
        adopted(tmp_path / "folder", tmp_path / "copy")


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 1000, None])
def test_a_damaged_file_is_refused(tmp_path: Path, store: SqliteStore, put: Put, damage: bytes | None) -> None:
    for number in range(30):
        put(store, f"d{number}", ["words " * 400])
    store.snapshot(tmp_path / "copy")
    if damage is None:
        whole = bytearray((tmp_path / "copy").read_bytes())
        for page in range(2, len(whole) // 8192):
            whole[page * 8192 : page * 8192 + 4096] = b"\xff" * 4096
        damage = bytes(whole)
    (tmp_path / "copy").write_bytes(damage)
    with pytest.raises(DamagedArchive):
        check_database(tmp_path / "copy", "collection")


def test_an_empty_store_is_copied_too(tmp_path: Path, store: SqliteStore) -> None:
    store.snapshot(tmp_path / "copy")
    copy = adopted(tmp_path / "folder", tmp_path / "copy")
    assert (copy.revision(), copy.embedding_space()) == (0, store.embedding_space())
    assert (tmp_path / "folder" / DATABASE_NAME).is_file()
    copy.close()


def test_a_disk_without_room_is_told_and_leaves_no_draft(
    tmp_path: Path, store: SqliteStore, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a", ["words " * 4000])
    connect = snapshot._connected

    def on_a_small_disk(file: Path) -> object:
        connection = connect(file)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(snapshot, "_connected", on_a_small_disk)
    (tmp_path / "copies").mkdir()
    with pytest.raises(StorageFull):
        store.snapshot(tmp_path / "copies" / "one")
    assert not (tmp_path / "copies" / "one.draft").exists()
