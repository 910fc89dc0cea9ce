import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from app.errors import Misconfigured
from app.stores import migration
from app.stores.migration import migrate, migrations_folder, needs_migration


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def test_an_empty_database_is_brought_to_head_and_then_left_alone(connection: Connection) -> None:
    assert needs_migration(connection, "catalog")
    migrate(connection, "catalog")
    assert not needs_migration(connection, "catalog")
    assert "jobs" in inspect(connection).get_table_names()
    migrate(connection, "catalog")


def test_a_database_of_a_newer_release_is_refused_and_left_as_it_is(connection: Connection) -> None:
    migrate(connection, "catalog")
    connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="9999"):
        migrate(connection, "catalog")
    assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


@pytest.mark.parametrize("stream", ["catalog", "collection"])
def test_the_files_of_a_stream_are_numbered_in_the_order_they_run(stream: str) -> None:
    script = ScriptDirectory(migrations_folder() / stream)
    steps = list(script.walk_revisions())
    assert [step.revision for step in steps] == sorted((step.revision for step in steps), reverse=True)
    assert all(Path(step.path).name.startswith(f"{step.revision}_") for step in steps)


def test_threads_may_migrate_several_databases_at_once(tmp_path: Path) -> None:
    begin = threading.Barrier(4)

    def work(number: int) -> None:
        engine = create_engine(f"sqlite:///{tmp_path / str(number)}.db")
        begin.wait(10)
        with engine.begin() as connection:
            migrate(connection, "catalog")
        engine.dispose()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for number in range(4):
        engine = create_engine(f"sqlite:///{tmp_path / str(number)}.db")
        assert "jobs" in inspect(engine).get_table_names()
        engine.dispose()


def test_migrations_come_from_the_installed_package_or_else_from_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (migrations_folder() / "catalog" / "env.py").is_file()
    monkeypatch.setattr(migration, "_APP", tmp_path / "app")
    assert migrations_folder() == tmp_path / "migrations"
    (tmp_path / "app" / "migrations").mkdir(parents=True)
    assert migrations_folder() == tmp_path / "app" / "migrations"
