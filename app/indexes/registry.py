"""The engines that can be an index, by name. A new one is a folder beside `local/` and a line here."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from app.indexes.local.dense import FaissDenseIndex, remove_other_files
from app.indexes.local.keyword import TantivyKeywordIndex
from app.indexes.port import CollectionIndex


def _local(folder: Path, signature: str) -> CollectionIndex:
    files = folder / "index"
    return CollectionIndex(
        dense=FaissDenseIndex(files),
        keyword=TantivyKeywordIndex(files / "keyword", signature),
        open_dense=partial(FaissDenseIndex, files),
        remove_others=partial(remove_other_files, files),
    )


INDEXES: dict[str, Callable[[Path, str], CollectionIndex]] = {"local": _local}


def create_index(folder: Path, signature: str, engine: str = "local") -> CollectionIndex:
    """Open the index of the collection in `folder`, made anew if need be.

    `signature` is that of the analyzer whose terms it holds.
    """
    return INDEXES[engine](folder, signature)
