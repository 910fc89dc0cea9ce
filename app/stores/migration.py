"""Bring a database to the head of its Alembic stream.

Alembic is imported only to migrate: it takes a tenth of a second, and most starts find nothing to do.
"""

import threading
from functools import lru_cache
from pathlib import Path
from typing import Literal

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select

from app.errors import Misconfigured

_APP = Path(__file__).resolve().parent.parent

# Alembic keeps the environment it runs in module globals, so two threads must never migrate at once.
_turn = threading.Lock()

_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(connection: Connection, stream: Literal["catalog", "collection"]) -> None:
    """Run the stream's missing migrations in the connection's transaction, which the caller commits.

    The transaction must already hold the write lock (`BEGIN IMMEDIATE`), so that two processes never run the same
    step. Raises `Misconfigured` when a newer release wrote the database.
    """
    from alembic import command
    from alembic.config import Config

    current = _revision(connection)
    if current == _head(stream):
        return
    if current is not None and current not in _revisions(stream):
        raise Misconfigured(
            f"the {stream} database is at revision {current}, which this release does not know",
            hint="run the release that wrote the data folder, or a later one",
        )
    config = Config()
    config.set_main_option("script_location", str(migrations_folder() / stream).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _turn:
        command.upgrade(config, "head")


def needs_migration(connection: Connection, stream: Literal["catalog", "collection"]) -> bool:
    """Return whether the database is not at the stream's head; reads only."""
    return _revision(connection) != _head(stream)


def migrations_folder() -> Path:
    """Return where the migrations are: inside the installed package, else beside it in a checkout."""
    installed = _APP / "migrations"
    return installed if installed.is_dir() else _APP.parent / "migrations"


def known_revisions(stream: Literal["catalog", "collection"]) -> frozenset[str]:
    """Return every revision that this release can bring to head."""
    return _revisions(stream)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.scalar(select(_VERSION.c.version_num))


def _head(stream: str) -> str:
    return max(_revisions(stream))


@lru_cache
def _revisions(stream: str) -> frozenset[str]:
    """Return the numbers that the migrations' files begin with, which are their revisions."""
    return frozenset(step.name.partition("_")[0] for step in (migrations_folder() / stream / "versions").glob("*_*.py"))
