import threading
from pathlib import Path
from typing import Any

import pysqlite3
import pytest
from sqlalchemy import select, text

from app.catalog import database as database_module
from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.tables import collections
from app.errors import StorageFull, StoreBusy, StoreDamaged

MIGRATE = """
import sys
from pathlib import Path
from app.catalog.database import Database
print("ready", flush=True)
sys.stdin.readline()
database = Database(Path(sys.argv[1]))
database.migrate()
with database.read() as connection:
    print(connection.exec_driver_sql("SELECT count(*) FROM jobs").scalar())
database.close()
"""


def test_processes_that_start_at_once_migrate_one_new_database(tmp_path: Path, start_python: Any) -> None:
    processes = [start_python("-c", MIGRATE, tmp_path / "data" / "catalog.db") for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60) for process in processes] == [("0\n", "")] * 4


def test_a_migrated_database_is_left_as_it_is(database: Database, tmp_path: Path) -> None:
    Collections(database).create("handbook", settings={})
    again = Database(tmp_path / "catalog.db")
    again.migrate()
    assert Collections(again).get("handbook") is not None
    again.close()


def test_only_the_owner_may_read_the_file(database: Database, tmp_path: Path) -> None:
    Collections(database).create("handbook", settings={})
    files = list(tmp_path.glob("catalog.db*"))
    assert len(files) >= 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_deleted_content_is_overwritten(database: Database, tmp_path: Path) -> None:
    kept = Collections(database)
    kept.create("handbook", description="a sentence that must not stay", settings={})
    kept.delete("handbook")
    with database.read() as connection:
        assert connection.execute(text("PRAGMA secure_delete")).scalar() == 1
    database.close()
    assert b"a sentence that must not stay" not in (tmp_path / "catalog.db").read_bytes()


def test_a_write_that_fails_leaves_nothing(database: Database) -> None:
    kept = Collections(database)
    made = kept.create("handbook", settings={})

    def delete_all_and_fail() -> None:
        with database.write() as connection:
            connection.execute(collections.delete())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        delete_all_and_fail()
    assert kept.get("handbook") == made


def test_a_read_sees_one_moment_while_another_connection_writes(database: Database) -> None:
    names = select(collections.c.name)
    with database.read() as reader:
        before = reader.execute(names).all()
        Collections(database).create("handbook", settings={})
        assert reader.execute(names).all() == before == []
    with database.read() as reader:
        assert reader.execute(names).scalars().all() == ["handbook"]


def test_a_write_waits_for_the_one_before(database: Database) -> None:
    entered, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        with database.write():
            entered.set()
            leave.wait(10)
            order.append("first")

    def second() -> None:
        entered.wait(10)
        leave.set()
        with database.write():
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]


def test_a_writer_of_another_process_that_does_not_end_is_told_as_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.05)
    database = Database(tmp_path / "catalog.db")
    database.migrate()
    other = pysqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy) as refused, database.write():
        pass
    assert refused.value.retry_after == 1
    other.execute("ROLLBACK")
    other.close()
    with database.write():
        pass
    database.close()


def test_a_full_disk_is_told_as_such(database: Database) -> None:
    def fill() -> None:
        with database.write() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
            connection.exec_driver_sql("CREATE TABLE too_much AS SELECT randomblob(100000)")

    with pytest.raises(StorageFull):
        fill()


def test_a_damaged_database_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"no database" * 1000)
    damaged = Database(tmp_path / "catalog.db")
    with pytest.raises(StoreDamaged):
        damaged.migrate()
    damaged.close()
