"""Take a collection's database from elsewhere into a folder."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Select, Text, case, func, literal_column, select, type_coerce
from sqlalchemy.dialects import sqlite

from app.errors import DamagedArchive, UnusableArchive
from app.settings import Settings
from app.stores.driver import sqlite_driver
from app.stores.registry import open_store
from app.stores.schema import (
    content_vectors,
    documents,
    embedding_space,
    kept_vectors,
    metadata,
    parent_vectors,
    vectors,
    versions,
)
from app.stores.snapshot import check_database, schema_of
from app.stores.sqlite import DATABASE_NAME

_LISTS = frozenset({"warnings", "heading_path"})
"""JSON columns that hold lists; the others hold objects."""


def adopt_store(folder: Path, file: Path, settings: Settings) -> None:
    """Put a checked file in the place of the folder's empty store and bring it to head.

    Raises `UnusableArchive` for a file whose tables are not exactly those that the migrations make, and
    `DamagedArchive` for values that no store has written.
    """
    check_database(file, "collection")
    database = folder / DATABASE_NAME
    made_by_migrations = schema_of(database)
    for rest in folder.glob(f"{DATABASE_NAME}*"):
        rest.unlink()
    file.replace(database)
    open_store(folder, settings).close()
    if foreign := schema_of(database) ^ made_by_migrations:
        _, name, _ = min(foreign, key=lambda described: described[1])
        raise UnusableArchive(f"{file.name} has another {name[:100]!r} than the migrations make")
    _check_values(database)


def _check_values(database: Path) -> None:
    """Raise `DamagedArchive` where JSON or a vector is none, since whatever reads it later would fail."""
    with closing(sqlite_driver().connect(str(database))) as connection:
        for name, statement in _faults():
            compiled = statement.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
            if connection.execute(str(compiled)).fetchone() is not None:
                raise DamagedArchive(f"{database.name} is not sound: {name} holds what no store has written")


def _faults() -> Iterator[tuple[str, Select[Any]]]:
    """Yield what is looked at, and the statement that finds a row whose value is wrong."""
    for table in metadata.sorted_tables:
        for column in table.columns:
            if isinstance(column.type, JSON):
                written = type_coerce(column, Text)
                is_other = func.json_type(written) != ("array" if column.name in _LISTS else "object")
                is_wrong = case((func.json_valid(written) == 1, is_other), else_=written.is_not(None))
                yield f"{table.name}.{column.name}", select(1).where(is_wrong)
    for table in (documents, versions):
        # Names a file of the collection's originals.
        is_other = (func.length(table.c.content_hash) != 64) | table.c.content_hash.bool_op("GLOB")("*[^0-9a-f]*")
        yield f"{table.name}.content_hash", select(1).select_from(table).where(is_other)
    for table in (vectors, content_vectors, parent_vectors, kept_vectors):
        rows = table.outerjoin(embedding_space, embedding_space.c.id == 1)
        has_other_length = func.length(table.c.vector).is_distinct_from(
            embedding_space.c.dimensions * literal_column("4")
        )
        yield table.name, select(1).select_from(rows).where(has_other_length)
