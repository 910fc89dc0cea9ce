"""Take a collection's database from elsewhere into a folder."""

from pathlib import Path

from app.errors import UnusableArchive
from app.settings import Settings
from app.stores.registry import open_store
from app.stores.snapshot import check_database, schema_of
from app.stores.sqlite import DATABASE_NAME


def adopt_store(folder: Path, file: Path, settings: Settings) -> None:
    """Put a checked file in the place of the folder's empty store and bring it to head.

    Raises `UnusableArchive` for a file whose tables are not exactly those that the migrations make.
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
