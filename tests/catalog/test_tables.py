import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from app.catalog.database import Database
from app.catalog.tables import metadata


def test_the_migrations_make_exactly_these_tables(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        made = inspect(connection)
        for table in metadata.sorted_tables:
            assert made.get_pk_constraint(table.name)["constrained_columns"] == [c.name for c in table.primary_key]
            deletes = {key["name"]: key["options"].get("ondelete") for key in made.get_foreign_keys(table.name)}
            assert set(deletes.values()) <= {"CASCADE"}


def test_a_number_of_the_queue_is_never_used_twice(database: Database) -> None:
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sqlite_sequence").scalar() == 0


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])
def test_every_table_can_be_written_for_both_engines(dialect: sqlite.dialect) -> None:
    for table in metadata.sorted_tables:
        assert table.name in str(CreateTable(table).compile(dialect=dialect))
