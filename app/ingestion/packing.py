"""Export a collection: one moment of its store and the originals that it refers to, while writes go on."""

import errno
import os
import shutil
import threading
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from app.catalog.collections import Collection
from app.errors import NotFound, TooManyRequests, Unavailable
from app.ingestion.bundle import BundleWriter
from app.ingestion.ingest import Ingestion
from app.stores.port import CollectionStore
from app.stores.registry import open_store

DATABASE = "collection.db"
ORIGINALS = "originals"


RETRY_SECONDS = 30
_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK})


class ExportPlaces:
    """How many bundles this process makes and sends at once; each is as large as its collection."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = threading.BoundedSemaphore(most)

    def take(self) -> None:
        """Take a place, to be given back by `leave`; raises `TooManyRequests` where there is none."""
        if not self._free.acquire(blocking=False):
            raise TooManyRequests(
                f"{self._most} exports are made or sent already, as FOOTNOTE_EXPORTS allows",
                code="too_many_exports",
                hint="send the request again later",
                retry_after=RETRY_SECONDS,
            )

    def leave(self) -> None:
        """Give a place back."""
        self._free.release()


def export_collection(ingestion: Ingestion, collection: Collection, target: BinaryIO) -> None:
    """Write a bundle of the collection; documents that have no version yet, jobs and keys are no part of it."""
    with ingestion.opened.get(collection.id) as opened, TemporaryDirectory(dir=ingestion.spool) as made:
        folder = Path(made)
        pack_store(opened.store, opened.folder, folder, without_work=True)
        with closing(open_store(folder, ingestion.settings)) as copy:
            content = _content(collection, copy)
            digests = sorted(set(copy.content_hashes()))
        writer = BundleWriter(target)
        writer.add(DATABASE, folder / DATABASE)
        missing = [digest for digest in digests if not pack_original(writer, folder, digest)]
        writer.finish("collection", content | {"missing_originals": missing})


def pack_store(store: CollectionStore, source: Path, folder: Path, *, without_work: bool) -> None:
    """Put a copy of a store into a folder, and links to all originals that it may refer to, or copies.

    They keep the bytes of originals that are deleted meanwhile. They are made before the copy, for what is deleted
    after it, and after it, for what came before its moment. Raises `NotFound` where the source is deleted meanwhile.
    """
    originals = folder / ORIGINALS
    originals.mkdir()
    try:
        _link_originals(source / ORIGINALS, originals)
        store.snapshot(folder / DATABASE, without_work=without_work)
        _link_originals(source / ORIGINALS, originals)
    except (FileNotFoundError, Unavailable):
        if source.is_dir():
            raise
        raise NotFound("the collection was deleted while it was packed") from None


def pack_original(writer: BundleWriter, folder: Path, digest: str, prefix: str = "") -> bool:
    """Add an original, by the name that it has in a collection's folder; return whether it is there."""
    try:
        writer.add(f"{prefix}{ORIGINALS}/{digest}", folder / ORIGINALS / digest)
    except FileNotFoundError:
        return False
    return True


def _link_originals(source: Path, target: Path) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                with suppress(FileNotFoundError, FileExistsError):
                    _link_or_copy(entry.path, target / entry.name)


def _link_or_copy(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # File systems of some network shares and containers know no hard links.
        if not target.exists():
            shutil.copyfile(source, target)


def _content(collection: Collection, copy: CollectionStore) -> dict[str, Any]:
    stats, space = copy.stats(), copy.embedding_space()
    settings = collection.settings
    if space is not None:
        # A collection that is just moved to another model names the one before for a moment longer.
        settings = settings | {"embedding": settings["embedding"] | {"model": space.model}}
    return {
        "collection": {
            "name": collection.name,
            "title": collection.title,
            "description": collection.description,
            "settings": settings,
        },
        "embedding_space": None
        if space is None
        else {"provider": space.provider, "model": space.model, "dimensions": space.dimensions},
        "counts": {
            "documents": stats.documents,
            "chunks": stats.chunks,
            "characters": stats.characters,
            "revision": stats.revision,
        },
    }
