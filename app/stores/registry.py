"""Every store engine by name."""

from pathlib import Path
from typing import Protocol

from app.settings import Settings
from app.stores.port import CollectionStore
from app.stores.sqlite import SqliteStore


class StoreEngine(Protocol):
    """What opens a store in a folder, and makes it there if it `creates`."""

    def __call__(self, folder: Path, settings: Settings, *, creates: bool) -> CollectionStore:
        """Return the store, at head."""
        ...


STORES: dict[str, StoreEngine] = {"sqlite": SqliteStore}


def create_store(folder: Path, settings: Settings, engine: str = "sqlite") -> CollectionStore:
    """Make a collection's store, or open the one that is there, and bring it to head.

    The folder must exist, so that this never brings a deleted collection back; raises `NotFound` where it does not.
    """
    return STORES[engine](folder, settings, creates=True)


def open_store(folder: Path, settings: Settings, engine: str = "sqlite") -> CollectionStore:
    """Open a collection's store and bring it to head.

    Raises `NotFound` where the folder is gone, and `StoreDamaged` where only the store is, which is never made anew:
    an empty store would pass for the lost one.
    """
    return STORES[engine](folder, settings, creates=False)
