"""Import a collection from a bundle: everything in it is checked before a collection is known."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.catalog.collections import Collection
from app.errors import DamagedArchive, NameTaken, UnusableArchive
from app.ingestion.bundle import BundleReader, read_bundle
from app.ingestion.ingest import Ingestion
from app.ingestion.packing import DATABASE, ORIGINALS
from app.settings import Settings
from app.stores.adoption import adopt_store
from app.stores.registry import open_store

log = logging.getLogger(__name__)

INFLATION = 100
"""How many times the largest upload an uploaded bundle may unpack to."""

_HASH = "[0-9a-f]{64}"
_ORIGINAL = re.compile(f"{ORIGINALS}/({_HASH})")

CheckSettings = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Return settings as a collection has them; raise `UnusableArchive` for what cannot be used."""


class _Packed(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    title: str | None
    description: str | None
    settings: dict[str, Any]


class _Counts(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    documents: dict[str, int]
    chunks: int
    characters: int
    revision: int


class _Content(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    collection: _Packed
    counts: _Counts
    missing_originals: list[Annotated[str, Field(pattern=f"^{_HASH}$")]]


def import_collection(
    ingestion: Ingestion, name: str, file: Path, *, check_settings: CheckSettings, most_bytes: int | None = None
) -> Collection:
    """Make a collection of a bundle, with its ids, etags and vectors; no model is asked.

    Raises `NameTaken`, and the `UnusableArchive` that says why nothing was made.
    """
    if ingestion.collections.get(name) is not None:
        raise NameTaken(f"there is a collection {name!r} already", hint="import under another name, or delete that one")
    with read_bundle(file, "collection", most_bytes=most_bytes) as bundle:
        content = _content_of(bundle)
        settings = check_settings(content.collection.settings)
        bundle.require_room(ingestion.settings.data)
        with ingestion.opened.making(partial(_fill, bundle, content, ingestion.settings)) as put_in_place:
            collection = ingestion.collections.create(
                name,
                title=content.collection.title,
                description=content.collection.description,
                settings=settings,
                put_in_place=put_in_place,
            )
    _build_index(ingestion, collection)
    return collection


def _content_of(bundle: BundleReader) -> _Content:
    for name, entry in bundle.manifest.files.items():
        original = _ORIGINAL.fullmatch(name)
        if name != DATABASE and original is None:
            raise UnusableArchive(f"the archive holds {name[:200]!r}, which no collection has")
        if original and original[1] != entry.sha256:
            raise DamagedArchive(f"{name} in the archive is not named by its content")
    if DATABASE not in bundle.manifest.files:
        raise DamagedArchive(f"the archive lacks {DATABASE}")
    try:
        return _Content.model_validate(bundle.manifest.content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UnusableArchive(f"the manifest's content is not as ours is, at {where[:200]!r}") from None


def _fill(bundle: BundleReader, content: _Content, settings: Settings, folder: Path) -> None:
    """Fill a new collection's folder, whose store is empty, and hold the parts against each other."""
    unpack_store(bundle, DATABASE, folder, settings)
    packed = {found[1] for name in bundle.manifest.files if (found := _ORIGINAL.fullmatch(name))}
    with closing(open_store(folder, settings)) as store:
        stats, referred = store.stats(), set(store.content_hashes())
    counts = _Counts(
        documents=stats.documents, chunks=stats.chunks, characters=stats.characters, revision=stats.revision
    )
    if counts != content.counts:
        raise DamagedArchive(f"{DATABASE} holds other counts than the manifest says")
    if foreign := packed - referred:
        raise UnusableArchive(f"the archive holds an original that no document refers to: {min(foreign)}")
    if missing := referred - packed - set(content.missing_originals):
        raise DamagedArchive(f"the archive lacks an original that a document refers to: {min(missing)}")
    for digest in packed:
        bundle.extract(f"{ORIGINALS}/{digest}", folder / ORIGINALS / digest)
    # Once for all files, where waiting for each took most of the time.
    os.sync()


def unpack_store(bundle: BundleReader, name: str, folder: Path, settings: Settings) -> None:
    """Put a packed database in the place of a folder's empty store; raises `UnusableArchive`."""
    incoming = folder / "incoming"
    incoming.mkdir()
    bundle.extract(name, incoming / DATABASE)
    adopt_store(folder, incoming / DATABASE, settings)
    incoming.rmdir()


def _build_index(ingestion: Ingestion, collection: Collection) -> None:
    """Build the index from the store, so that the first search need not wait for it."""
    try:
        with ingestion.opened.get(collection.id) as opened:
            opened.catch_up()
    except Exception:
        # The collection is made and whole: a search builds what is missing.
        log.exception(
            "the index of an imported collection could not be built yet", extra={"collection": collection.name}
        )
