"""Back up the whole data folder while the service runs, and restore it where none runs.

A backup is a bundle of the catalog (with jobs, keys' hashes and query logs), every collection's database and originals,
and the admin key's file where there is one: whoever reads it is the admin, so the file must have mode 0600. Indexes and
converted models are made again.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from app.bootstrap import Services, build_services
from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.process_owner import living_owners
from app.errors import Conflict, DamagedArchive, NotFound, UnusableArchive
from app.ingestion.bundle import BundleReader, BundleWriter, read_bundle
from app.ingestion.packing import DATABASE, ORIGINALS, pack_original, pack_store
from app.settings import Settings
from app.stores.snapshot import check_database

CATALOG = "catalog.db"
ADMIN_KEY = "admin.key"
COLLECTIONS = "collections"

_MEMBER = re.compile(rf"{COLLECTIONS}/(col_[0-9a-f]+)/(?:{re.escape(DATABASE)}|{ORIGINALS}/([0-9a-f]{{64}}))")
_BESIDE = ("models", "admin.key.lock")
"""What may be in a folder that holds no data."""


def back_up(services: Services, target: BinaryIO) -> int:
    """Write a bundle of the data folder and return how many collections are in it.

    The catalog is copied first: a job that ends after it is done again and finds its work done, where a later catalog
    would forget work that an earlier copy of its collection lacks.
    """
    writer = BundleWriter(target)
    with TemporaryDirectory(dir=services.ingestion.spool) as made:
        folder = Path(made)
        services.database.copy(folder / CATALOG)
        with closing(Database(folder / CATALOG)) as copy:
            collections = Collections(copy)
            ids = [found.id for found in list(collections.every()) if _pack(writer, services, found.id, folder)]
            for gone in [found for found in list(collections.every()) if found.id not in ids]:
                collections.delete(gone.name)
        writer.add(CATALOG, folder / CATALOG)
    key_file = services.settings.data / ADMIN_KEY
    if key_file.is_file():
        writer.add(ADMIN_KEY, key_file)
    writer.finish("data_folder", {"collections": ids})
    return len(ids)


def restore(settings: Settings, file: Path, *, force: bool = False) -> int:
    """Put a backup into the data folder and build every index; return how many collections there are.

    Everything is checked before anything is replaced. Raises `Conflict` for a folder that a process works on, or that
    holds data unless `force` replaces it, and the `UnusableArchive` that says what is wrong with the backup.
    """
    data = settings.data
    _require_idle(data)
    _require_empty(data, force=force)
    with read_bundle(file, "data_folder") as bundle:
        _check_names(bundle)
        data.mkdir(parents=True, exist_ok=True)
        bundle.require_room(data)
        staging = data / f".restoring-{secrets.token_hex(4)}"
        staging.mkdir(mode=0o700)
        try:
            _unpack(bundle, staging)
            os.sync()
            _swap(staging, data)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return _build_indexes(settings)


def _pack(writer: BundleWriter, services: Services, collection_id: str, folder: Path) -> bool:
    """Add a collection; return `False` where it was deleted since the catalog was copied."""
    place = folder / collection_id
    place.mkdir()
    try:
        with services.opened.get(collection_id) as opened:
            pack_store(opened.store, opened.folder, place, without_work=False)
    except NotFound:
        return False
    prefix = f"{COLLECTIONS}/{collection_id}/"
    writer.add(f"{prefix}{DATABASE}", place / DATABASE)
    for digest in sorted(original.name for original in (place / ORIGINALS).iterdir()):
        pack_original(writer, place, digest, prefix)
    shutil.rmtree(place)
    return True


def _require_idle(data: Path) -> None:
    if owners := living_owners(data / "workers"):
        raise Conflict(
            f"{len(owners)} running process(es) work on {data}",
            code="data_folder_in_use",
            hint="stop the service, then restore",
        )


def _require_empty(data: Path, *, force: bool) -> None:
    held = [path.name for path in data.iterdir() if path.name not in _BESIDE] if data.is_dir() else []
    if held and not force:
        raise Conflict(
            f"{data} holds {', '.join(sorted(held)[:5])}",
            code="data_folder_not_empty",
            hint="restore into an empty folder, or replace what is there with --force",
        )


def _check_names(bundle: BundleReader) -> None:
    for name, entry in bundle.manifest.files.items():
        member = _MEMBER.fullmatch(name)
        if member is None and name not in (CATALOG, ADMIN_KEY):
            raise UnusableArchive(f"the archive holds {name[:200]!r}, which no data folder has")
        if member and member[2] and member[2] != entry.sha256:
            raise DamagedArchive(f"{name} in the archive is not named by its content")
    if CATALOG not in bundle.manifest.files:
        raise DamagedArchive(f"the archive lacks {CATALOG}")


def _unpack(bundle: BundleReader, staging: Path) -> None:
    """Extract every file and hold the catalog against the collections."""
    ids = {member[1] for name in bundle.manifest.files if (member := _MEMBER.fullmatch(name))}
    for collection_id in ids:
        for name in (ORIGINALS, "index"):
            (staging / COLLECTIONS / collection_id / name).mkdir(parents=True)
    (staging / COLLECTIONS).mkdir(exist_ok=True)
    for name in bundle.manifest.files:
        bundle.extract(name, staging / name)
    check_database(staging / CATALOG, "catalog")
    for collection_id in ids:
        check_database(staging / COLLECTIONS / collection_id / DATABASE, "collection")
    if ids != _known_collections(staging / CATALOG):
        raise DamagedArchive("the archive's catalog and its collections do not belong together")


def _known_collections(catalog: Path) -> set[str]:
    with closing(Database(catalog)) as database:
        database.migrate()
        return {collection.id for collection in Collections(database).every()}


def _swap(staging: Path, data: Path) -> None:
    """Put the restored files in place; what they replace stays in `.replaced-…` until all of them are there."""
    replaced = data / f".replaced-{secrets.token_hex(4)}"
    replaced.mkdir(mode=0o700)
    restored = sorted(path.name for path in staging.iterdir() if path.suffix != ".lock")
    _move({*restored, f"{CATALOG}-wal", f"{CATALOG}-shm"}, data, replaced)
    _move(restored, staging, data)
    shutil.rmtree(replaced)


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    for name in names:
        if (source / name).exists():
            (source / name).rename(target / name)


def _build_indexes(settings: Settings) -> int:
    count = 0
    with closing(build_services(settings)) as services:
        for collection in services.collections.every():
            with services.opened.get(collection.id) as opened:
                opened.catch_up()
            count += 1
    return count
