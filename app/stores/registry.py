"""Every store engine by name."""

from collections.abc import Callable
from pathlib import Path

from app.settings import Settings
from app.stores.port import CollectionStore
from app.stores.sqlite import SqliteStore

STORES: dict[str, Callable[[Path, Settings], CollectionStore]] = {"sqlite": SqliteStore}


def create_store(folder: Path, settings: Settings, engine: str = "sqlite") -> CollectionStore:
    """Open a collection's store and bring it to head.

    The folder must exist, so that opening never brings a deleted collection back; raises `NotFound` where it does not.
    """
    return STORES[engine](folder, settings)
