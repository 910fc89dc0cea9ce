"""A bundle: one zip whose `manifest.json` names every other file with its size and SHA-256.

Exports of collections and backups of the data folder are bundles. A bundle that is read comes from anywhere: its names,
sizes and hashes are held against what a bundle of that kind may hold before anything of it is used.
"""

import hashlib
import json
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import DamagedArchive, StorageFull, UnsupportedArchive, UnusableArchive

FORMAT = 1
"""Raised when a bundle changes so that an older release cannot read it."""

MANIFEST = "manifest.json"

_BLOCK_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 256_000_000
_MOST_DIRECTORY_BYTES = 256_000_000
_END = struct.Struct("<4s4H2LH")
_LARGEST_COMMENT = 65_535

Kind = Literal["collection", "data_folder"]


class FileEntry(BaseModel):
    """A file of a bundle: its SHA-256 in hex and its size."""

    model_config = ConfigDict(extra="ignore", strict=True)

    sha256: str
    bytes: int = Field(ge=0)


class Manifest(BaseModel):
    """What a bundle says of itself; `content` is the kind's own."""

    model_config = ConfigDict(extra="ignore", strict=True)

    kind: Kind
    format: int
    app_version: str
    created_at: str
    files: dict[str, FileEntry]
    content: dict[str, Any]


class BundleWriter:
    """Write files into a zip as they are read, and the manifest last."""

    def __init__(self, target: BinaryIO) -> None:
        # The fastest level: vectors hardly shrink at all, and texts shrink to a third already.
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._files: dict[str, FileEntry] = {}

    def add(self, name: str, file: Path) -> None:
        """Add a file; raises `FileNotFoundError` with nothing added where it is gone."""
        digest, size = hashlib.sha256(), 0
        with file.open("rb") as source, self._zip.open(name, "w", force_zip64=True) as target:
            while block := source.read(_BLOCK_BYTES):
                digest.update(block)
                size += len(block)
                target.write(block)
        self._files[name] = FileEntry(sha256=digest.hexdigest(), bytes=size)

    def finish(self, kind: Kind, content: Mapping[str, Any]) -> None:
        """Write the manifest and the zip's end."""
        manifest = Manifest(
            kind=kind,
            format=FORMAT,
            app_version=version("footnote"),
            created_at=datetime.now(UTC).isoformat(),
            files=self._files,
            content=dict(content),
        )
        self._zip.writestr(MANIFEST, manifest.model_dump_json(indent=1))
        self._zip.close()


@dataclass(frozen=True, slots=True)
class BundleReader:
    """A bundle whose list of files has been checked; each file's content is checked when it is extracted."""

    manifest: Manifest
    _zip: zipfile.ZipFile

    def require_room(self, folder: Path) -> None:
        """Raise `StorageFull` where the disk of a folder has no room for all files."""
        needed = sum(entry.bytes for entry in self.manifest.files.values())
        if needed > shutil.disk_usage(folder).free:
            raise StorageFull(f"the archive unpacks to {needed} bytes, for which the disk has no room")

    def extract(self, name: str, target: Path) -> None:
        """Write a file to a new place, mode 0600; raises `DamagedArchive` where it is not the one that was packed."""
        expected = self.manifest.files[name]
        digest = hashlib.sha256()
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with _told_as_damage(), os.fdopen(descriptor, "wb") as written, self._zip.open(name) as source:
            # A member yields no more than the size in its head, which was held against the manifest.
            while block := source.read(_BLOCK_BYTES):
                digest.update(block)
                written.write(block)
        if digest.hexdigest() != expected.sha256:
            raise DamagedArchive(f"{name} in the archive is not the file that was packed")


@contextmanager
def read_bundle(file: Path, kind: Kind, *, most_bytes: int | None = None) -> Iterator[BundleReader]:
    """Open a bundle of a kind that unpacks to `most_bytes` at most.

    Raises the `UnusableArchive` that says what is wrong with it.
    """
    with _told_as_damage():
        _check_directory(file)
        archive = zipfile.ZipFile(file)
    with archive:
        with _told_as_damage():
            manifest = _read_manifest(archive, kind)
            _check_entries(archive, manifest, most_bytes)
        yield BundleReader(manifest, archive)


def _check_directory(file: Path) -> None:
    """Refuse a directory that would fill the memory, before `zipfile` reads it whole."""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _END.size - _LARGEST_COMMENT))
        tail = stream.read()
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < _END.size:
        raise DamagedArchive("this is no zip, or its end is missing", hint="send the file that the export gave, whole")
    # Where the size is in the longer record instead, this field is all ones, and the file itself bounds it.
    directory = min(_END.unpack_from(tail, place)[5], size)
    if directory > _MOST_DIRECTORY_BYTES:
        raise UnusableArchive("the archive holds more files than any export does")


def _read_manifest(archive: zipfile.ZipFile, kind: Kind) -> Manifest:
    try:
        entry = archive.getinfo(MANIFEST)
    except KeyError:
        raise UnusableArchive(
            f"the zip holds no {MANIFEST}, so it is none of ours", hint="send the file that the export gave"
        ) from None
    if entry.file_size > _MOST_MANIFEST_BYTES:
        raise UnusableArchive(f"{MANIFEST} is larger than any export's")
    try:
        members = json.loads(archive.read(entry))
    except (ValueError, RecursionError) as error:
        raise DamagedArchive(f"{MANIFEST} is no JSON") from error
    written = members.get("format") if isinstance(members, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise UnsupportedArchive(
            f"the archive has the format {written}, this release reads up to {FORMAT}",
            hint="use the release that wrote it, or a later one",
        )
    try:
        manifest = Manifest.model_validate(members)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UnusableArchive(f"{MANIFEST} is not as ours are, at {where[:200]!r}") from None
    if manifest.kind != kind:
        raise UnusableArchive(
            f"the archive is a {manifest.kind}'s, not a {kind}'s",
            hint="`footnote import` takes what export gave, `footnote restore` what backup gave",
        )
    return manifest


def _check_entries(archive: zipfile.ZipFile, manifest: Manifest, most_bytes: int | None) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise UnusableArchive("a name stands twice in the archive")
    foreign = set(names) - {MANIFEST} - manifest.files.keys()
    missing = manifest.files.keys() - set(names)
    if foreign:
        raise UnusableArchive(f"the archive holds {min(foreign)[:200]!r}, which its manifest does not name")
    if missing:
        raise DamagedArchive(f"the archive lacks {min(missing)[:200]!r}, which its manifest names")
    for entry in entries:
        if entry.flag_bits & 1:
            raise UnusableArchive("the archive is encrypted")
        if entry.filename != MANIFEST and entry.file_size != manifest.files[entry.filename].bytes:
            raise DamagedArchive(f"{entry.filename[:200]!r} has another size than the manifest says")
    total = sum(entry.file_size for entry in entries)
    if most_bytes is not None and total > most_bytes:
        raise UnusableArchive(
            f"the archive unpacks to {total} bytes; {most_bytes} are allowed",
            hint="raise FOOTNOTE_MAX_UPLOAD_BYTES, or use `footnote import` on the machine itself",
        )


@contextmanager
def _told_as_damage() -> Iterator[None]:
    """Raise what reading a zip raises as an error of the archive."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeError, struct.error) as error:
        raise DamagedArchive("the archive is not whole", hint="send the file that the export gave, whole") from error
    except RuntimeError as error:
        raise UnusableArchive("the archive is encrypted") from error
