import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pysqlite3
import pytest
from sqlalchemy import Connection

from app.domain import Document
from app.errors import Misconfigured, NotFound, StorageFull, StoreBusy, StoreDamaged, Unavailable
from app.settings import Settings
from app.stores import connection as connection_module
from app.stores.connection import Database
from app.stores.sqlite import DATABASE_NAME, SqliteStore

Put = Callable[..., Document]
COUNTERS = 3
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "c.db", read_seconds=0.05, write_seconds=0.05, mapped_bytes=100_000_000)
    opened.migrate()
    yield opened
    opened.close()


def open_files(path: Path) -> int:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(link.readlink() == path for link in links if link.is_symlink())


def count_counters(connection: Connection) -> int:
    return connection.exec_driver_sql("SELECT count(*) FROM counters").scalar_one()


def test_a_read_past_the_time_limit_is_stopped_and_the_connection_lives_on(database: Database) -> None:
    with pytest.raises(Unavailable) as refused, database.reading() as connection:
        connection.exec_driver_sql(ENDLESS).scalar()
    assert refused.value.code == "search_timeout"
    with database.reading() as connection:
        assert count_counters(connection) == COUNTERS
    with database.reading(limited=False) as connection:
        connection.exec_driver_sql(f"{ENDLESS.replace('FROM n)', 'FROM n LIMIT 500000)')}").scalar()


def test_a_writer_that_waits_too_long_for_another_thread_is_told_to_try_again(database: Database) -> None:
    with database.writing():
        failures = []

        def write() -> None:
            try:
                with database.writing():
                    pass
            except StoreBusy as error:
                failures.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert [failure.retry_after for failure in failures] == [1]


def test_a_writer_that_waits_too_long_for_another_process_is_told_to_try_again(
    database: Database, tmp_path: Path
) -> None:
    other = pysqlite3.connect(tmp_path / "c.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy), database.writing():
        pass
    other.execute("ROLLBACK")
    other.close()
    with database.writing() as connection:
        assert count_counters(connection) == COUNTERS


def test_a_full_disk_is_told_and_changes_nothing(store: SqliteStore, put: Put) -> None:
    put(store, "d", ["old "])
    with store._database.writing() as connection:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {used}")
    with pytest.raises(StorageFull):
        put(store, "d", ["new text " * 100_000])
    assert store.text("d", 0, None) == "old "
    assert store.verify() == []


def test_readers_see_the_state_before_while_a_writer_is_at_work(database: Database) -> None:
    with database.writing() as writer:
        writer.exec_driver_sql("DELETE FROM counters")
        with database.reading() as reader:
            assert count_counters(reader) == COUNTERS


def test_all_statements_of_a_snapshot_see_one_moment(database: Database) -> None:
    with database.reading(snapshot=True) as reader:
        assert count_counters(reader) == COUNTERS
        with database.writing() as writer:
            writer.exec_driver_sql("DELETE FROM counters")
        assert count_counters(reader) == COUNTERS
    with database.reading() as reader:
        assert count_counters(reader) == 0


def test_threads_that_came_and_went_leave_few_connections(database: Database, tmp_path: Path) -> None:
    """The file itself may stay open more often, since SQLite closes it late; each connection has its own log."""
    most = threading.Barrier(6)

    def read() -> None:
        with database.reading() as connection:
            count_counters(connection)
            most.wait(timeout=30)

    threads = [threading.Thread(target=read) for _ in range(18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= open_files(tmp_path / "c.db-wal") <= 4
    assert open_files(tmp_path / "c.db") <= 8


def test_a_read_that_finds_no_free_connection_in_time_is_told_to_try_again(database: Database) -> None:
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(database.reading())
        with pytest.raises(StoreBusy):
            stack.enter_context(database.reading())


def mapped_bytes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA mmap_size").scalar_one())


def test_one_connection_at_a_time_has_the_file_mapped(database: Database) -> None:
    with database.reading_scattered() as mapped:
        assert mapped_bytes(mapped) > 0
        with database.reading_scattered() as other:
            assert mapped_bytes(other) == 0
            assert count_counters(other) == COUNTERS
    with database.reading_scattered() as mapped, database.reading() as other:
        assert (mapped_bytes(mapped) > 0, mapped_bytes(other)) == (True, 0)


def test_a_file_is_not_mapped_unless_it_is_wanted(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "c.db", read_seconds=1, write_seconds=1)) as unmapped:
        unmapped.migrate()
        with unmapped.reading_scattered() as connection:
            assert (mapped_bytes(connection), count_counters(connection)) == (0, COUNTERS)


def test_a_mapped_file_is_read_as_it_is_after_every_commit_and_when_it_shrinks(
    database: Database, tmp_path: Path
) -> None:
    with database.writing() as writer:
        writer.exec_driver_sql("CREATE TABLE blobs (id INTEGER PRIMARY KEY, content BLOB)")
    sums = "SELECT count(*), sum(length(content)), group_concat(hex(substr(content, 9000, 2))) FROM blobs"
    for content in (b"a", b"b"):
        with database.writing() as writer:
            writer.exec_driver_sql("DELETE FROM blobs")
            for number in range(200):
                writer.exec_driver_sql("INSERT INTO blobs VALUES (?, ?)", (number, content * 20_000))
        with database.reading_scattered() as mapped:
            assert tuple(mapped.exec_driver_sql(sums).one()) == (200, 4_000_000, ",".join([content.hex() * 2] * 200))
    with database.writing() as writer:
        writer.exec_driver_sql("DELETE FROM blobs WHERE id > 1")
    large = (tmp_path / "c.db").stat().st_size
    database.compact()
    assert (tmp_path / "c.db").stat().st_size < large / 10
    with database.reading_scattered() as mapped:
        assert tuple(mapped.exec_driver_sql(sums).one()) == (2, 40_000, "6262,6262")


def read_forever(database: Database) -> None:
    while True:
        with database.reading():
            pass


def test_closing_waits_for_what_runs_and_leaves_no_open_file(database: Database, tmp_path: Path) -> None:
    running, finish = threading.Event(), threading.Event()
    order: list[str] = []

    def read() -> None:
        with database.reading() as connection:
            running.set()
            finish.wait(timeout=30)
            count_counters(connection)
            order.append("read")

    reader = threading.Thread(target=read)
    reader.start()
    running.wait(timeout=30)
    closer = threading.Thread(target=lambda: (database.close(), order.append("closed")))
    closer.start()
    with pytest.raises(Unavailable):
        read_forever(database)
    finish.set()
    reader.join()
    closer.join()
    assert order == ["read", "closed"]
    assert open_files(tmp_path / "c.db") == 0
    shutil.rmtree(tmp_path)


def test_a_deleted_collection_is_not_made_again_by_one_that_is_still_open(database: Database, tmp_path: Path) -> None:
    together = threading.Barrier(2)
    refused: list[type] = []

    def read() -> None:
        together.wait(timeout=30)
        try:
            with database.reading():
                pass
        except NotFound as error:
            refused.append(type(error))

    with database.reading():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        thread = threading.Thread(target=read)
        thread.start()
        together.wait(timeout=30)
        thread.join()
    assert refused == [NotFound]
    assert list(tmp_path.iterdir()) == []


def test_deleted_text_is_in_no_file_any_more(store: SqliteStore, put: Put, tmp_path: Path) -> None:
    put(store, "d", ["SECRET-42 is the code "] * 500, {"field": "SECRET-42"})
    files = lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: E731
    assert b"SECRET-42" in files()
    store.delete_documents(["d"])
    assert b"SECRET-42" not in files()


def test_a_long_log_is_emptied_once_its_reader_is_gone(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_LARGEST_LOG_BYTES", 100_000)
    monkeypatch.setattr(connection_module, "_CHECKPOINT_WAIT_SECONDS", 0.01)
    log = tmp_path / "c.db-wal"

    def write() -> None:
        with database.writing() as connection:
            connection.exec_driver_sql("INSERT OR REPLACE INTO counters VALUES ('x' || random(), randomblob(50000))")

    with database.reading(snapshot=True) as reader:
        count_counters(reader)
        for _ in range(10):
            write()
        assert log.stat().st_size > 400_000
    write()
    assert log.stat().st_size == 0


def test_the_drivers_own_words_reach_nobody_for_a_newer_file(database: Database, tmp_path: Path) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Misconfigured, match="9999"):
        Database(tmp_path / "c.db", read_seconds=1, write_seconds=1).migrate()


def test_several_openings_at_once_make_one_sound_file(tmp_path: Path) -> None:
    together = threading.Barrier(6)
    opened: list[SqliteStore] = []

    def create() -> None:
        together.wait(timeout=30)
        opened.append(SqliteStore(tmp_path, Settings()))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.verify() for store in opened] == [[]] * 6
    for store in opened:
        store.close()
    file = pysqlite3.connect(tmp_path / DATABASE_NAME)
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file.execute("PRAGMA page_size").fetchone() == (8192,)
    file.close()


def test_a_damaged_file_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"no database" * 1000)
    damaged = Database(tmp_path / "c.db", read_seconds=1, write_seconds=1)
    with pytest.raises(StoreDamaged):
        damaged.migrate()
    damaged.close()


def test_a_text_with_damaged_bytes_is_told_as_damage(database: Database) -> None:
    with pytest.raises(StoreDamaged), database.reading() as connection:
        connection.exec_driver_sql("SELECT CAST(x'61ff' AS TEXT)").all()


def test_a_missing_file_is_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    missing = Database(tmp_path / "c.db", read_seconds=1, write_seconds=1)
    with pytest.raises(StoreDamaged):
        missing.migrate(creates=False)
    assert not (tmp_path / "c.db").exists()
    missing.migrate()
    missing.close()
    assert (tmp_path / "c.db").exists()
