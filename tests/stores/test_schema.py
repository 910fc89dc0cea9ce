import pysqlite3
from sqlalchemy import create_engine

from app.stores.schema import metadata
from app.stores.sqlite import DATABASE_NAME, SqliteStore


def layout(connection: pysqlite3.Connection) -> dict[str, object]:
    """Return what makes two databases the same, but for the order of columns and indexes."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: {
            # The first member only numbers the lines, by an order that changes from run to run.
            what: sorted(str(row[1:]) for row in connection.execute(f"PRAGMA {what}('{name}')"))
            for what in ("table_xinfo", "index_list", "foreign_key_list")
        }
        | {"options": connection.execute("SELECT wr, strict FROM pragma_table_list WHERE name = ?", (name,)).fetchall()}
        for name in names
        if name != "alembic_version"
    }


def test_the_migrations_make_what_the_tables_say(store: SqliteStore, tmp_path: object) -> None:
    migrated = pysqlite3.connect(f"{tmp_path}/{DATABASE_NAME}")
    declared = pysqlite3.connect(f"{tmp_path}/declared.db")
    engine = create_engine("sqlite+pysqlite://", module=pysqlite3, creator=lambda: declared)
    metadata.create_all(engine)
    assert layout(migrated) == layout(declared)
    engine.dispose()
    migrated.close()
    declared.close()
