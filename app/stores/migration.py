"""Bring a database to the head of its Alembic stream."""

import threading
from functools import lru_cache
from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.errors import Misconfigured

_APP = Path(__file__).resolve().parent.parent

# Alembic keeps the environment it runs in module globals, so two threads must never migrate at once.
_turn = threading.Lock()


def migrate(connection: Connection, stream: Literal["catalog", "collection"]) -> None:
    """Run the stream's missing migrations in the connection's transaction, which the caller commits.

    The transaction must already hold the write lock (`BEGIN IMMEDIATE`), so that two processes never run the same
    step. Raises `Misconfigured` when a newer release wrote the database.
    """
    script = _script(stream)
    current = MigrationContext.configure(connection).get_current_revision()
    if current == script.get_current_head():
        return
    if current is not None and current not in _revisions(stream):
        raise Misconfigured(
            f"the {stream} database is at revision {current}, which this release does not know",
            hint="run the release that wrote the data folder, or a later one",
        )
    config = Config()
    config.set_main_option("script_location", script.dir.replace("%", "%%"))
    config.attributes["connection"] = connection
    with _turn:
        command.upgrade(config, "head")


def needs_migration(connection: Connection, stream: Literal["catalog", "collection"]) -> bool:
    """Return whether the database is not at the stream's head; reads only."""
    return MigrationContext.configure(connection).get_current_revision() != _script(stream).get_current_head()


def migrations_folder() -> Path:
    """Return where the migrations are: inside the installed package, else beside it in a checkout."""
    installed = _APP / "migrations"
    return installed if installed.is_dir() else _APP.parent / "migrations"


@lru_cache
def _script(stream: str) -> ScriptDirectory:
    return ScriptDirectory(migrations_folder() / stream)


@lru_cache
def _revisions(stream: str) -> frozenset[str]:
    return frozenset(step.revision for step in _script(stream).walk_revisions())
