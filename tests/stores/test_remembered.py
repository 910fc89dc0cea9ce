"""Facts are read once, and again after any commit: of this process, of another connection, of another process."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from app.errors import StoreDamaged, Unavailable
from app.stores.connection import Database
from app.stores.driver import sqlite_driver
from app.stores.remembered import CommitWatcher, Remembered

NAME = "c.db"


class Reader:
    """Reads a counter and counts how often."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, connection: Connection) -> int:
        self.reads += 1
        return connection.exec_driver_sql("SELECT value FROM counters WHERE name = 'scope'").scalar_one()


def add_one(database: Database) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE counters SET value = value + 1 WHERE name = 'scope'")


def change_and_fail(database: Database) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE counters SET value = value + 1 WHERE name = 'scope'")
        raise ZeroDivisionError


def test_a_fact_is_read_once_until_something_is_committed(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    first = remembered.get("scope", read)
    assert [remembered.get("scope", read) for _ in range(3)] == [first] * 3
    assert read.reads == 1
    add_one(database)
    assert remembered.get("scope", read) == first + 1
    assert remembered.get("scope", read) == first + 1
    assert read.reads == 2


def test_a_commit_of_another_process_is_seen(database: Database, tmp_path: Path) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    first = remembered.get("scope", read)
    # A connection of another library, as another process has one.
    with sqlite3.connect(tmp_path / NAME) as other:
        other.execute("UPDATE counters SET value = value + 5 WHERE name = 'scope'")
    other.close()
    assert remembered.get("scope", read) == first + 5


def test_what_is_rolled_back_changes_nothing(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    first = remembered.get("scope", read)
    with pytest.raises(ZeroDivisionError):
        change_and_fail(database)
    assert remembered.get("scope", read) == first


def test_a_commit_while_a_fact_is_read_is_seen_by_the_next(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()

    def overtaken(connection: Connection) -> int:
        value = read(connection)
        add_one(database)
        return value

    first = remembered.get("scope", overtaken)
    assert remembered.get("scope", read) == first + 1


def test_a_fact_that_ends_by_itself_is_read_again(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    for is_valid, reads in ((True, 1), (True, 1), (False, 2)):
        remembered.get("scope", read, lambda _, is_valid=is_valid: is_valid)
        assert read.reads == reads


def test_many_names_are_not_kept_for_ever(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    for name in range(200):
        remembered.get(name, read)
    assert read.reads == 200
    assert len(remembered._facts) <= 32


def test_what_is_not_there_pushes_nothing_out(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading, most=2), Reader()
    remembered.get("scope", read)
    for name in range(5):
        assert remembered.get(name, lambda _: None) is None
    assert remembered.known("scope") is not None


@pytest.mark.parametrize("fact", [0, (), [], ""])
def test_a_fact_of_nothing_is_remembered_too(database: Database, fact: object) -> None:
    remembered, reads = Remembered(database.moment, database.reading), list[object]()
    for _ in range(2):
        assert remembered.get("fact", lambda _: reads.append(fact) or fact) == fact
    assert reads == [fact]


def test_what_is_known_is_told_without_reading(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    assert remembered.known("scope") is None
    value = remembered.get("scope", read)
    assert remembered.known("scope") == value
    add_one(database)
    assert remembered.known("scope") is None
    assert read.reads == 1


def test_a_closed_database_is_told(database: Database) -> None:
    remembered, read = Remembered(database.moment, database.reading), Reader()
    remembered.get("scope", read)
    database.close()
    with pytest.raises(Unavailable):
        remembered.get("scope", read)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database at all" * 1000)
    damaged = Database(tmp_path / NAME, read_seconds=5, write_seconds=5)
    try:
        with pytest.raises(StoreDamaged):
            damaged.moment()
    finally:
        damaged.close()


def test_what_was_committed_while_nobody_watched_is_seen(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+pysqlite:///{tmp_path / NAME}", module=sqlite_driver())
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE counters (name, value)")
    watcher = CommitWatcher(engine)
    moments = [watcher.moment()]
    watcher.close()
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO counters VALUES ('scope', 1)")
    moments.append(watcher.moment())
    watcher.close()
    engine.dispose()
    assert moments[0] != moments[1]
