"""The keyword index's fields and files: made, opened, and made anew where they are damaged or of another format."""

import errno
import hashlib
import logging
import os
import re
import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tantivy import Document, Index, Schema, SchemaBuilder

from app.errors import FootnoteError, NotFound, StorageFull, Unavailable
from app.indexes.local.lock import WriteLock
from app.indexes.port import IndexEntry

FORMAT = 3
"""Raised whenever the fields or their meaning change; an index of another format is made anew."""

REVISION_FILE = "revision"

REPAIR_WAIT_SECONDS = 5.0

Stamp: TypeAlias = tuple[tuple[int, int], tuple[int, int] | None]

_SYSTEM_ERROR = re.compile(r"(?:os error |code: )(\d+)")

log = logging.getLogger(__name__)


class DamagedIndex(Unavailable):
    """A commit failed for no reason of the operating system."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The schema, and the name of the field that is 1 in every chunk: its frequency counts deleted chunks too."""

    schema: Schema
    present: str

    @classmethod
    def of(cls, signature: str) -> "Fields":
        """Return the fields of an index whose terms were made by the analysis of this signature."""
        digest = hashlib.sha256(f"{FORMAT}/{signature}".encode()).hexdigest()[:16]
        # Format and analysis are in a field's name, so tantivy itself refuses an index of another one.
        present = f"present_{digest}"
        builder = SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="whitespace", index_option="position")
        builder.add_unsigned_field("chunk", indexed=True, fast=True)
        builder.add_unsigned_field("document", indexed=True, fast=True)
        builder.add_unsigned_field(present, indexed=True)
        return cls(builder.build(), present)

    def chunk(self, entry: IndexEntry) -> Document:
        """Return the document of a chunk."""
        # Keyword arguments of `Document` would make signed integers, which the writer's thread dies of.
        document = Document()
        document.add_text("text", " ".join(entry.terms))
        document.add_unsigned("chunk", int(entry.chunk_key))
        document.add_unsigned("document", int(entry.document_key))
        document.add_unsigned(self.present, 1)
        return document


def commit_stamp(folder: Path) -> Stamp | None:
    """Return what changes with every commit, for the price of two files' status; `None` without an index."""
    # Strings, since every search asks several times, and paths took ten times as long as the files' status.
    content = _file_stamp(f"{folder}/meta.json")
    return None if content is None else (content, _file_stamp(f"{folder}/{REVISION_FILE}"))


def read_revision(folder: Path) -> int:
    """Return the revision that the content has at least reached; 0 where none can be read."""
    try:
        return int((folder / REVISION_FILE).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def write_revision(folder: Path, revision: int) -> None:
    """Say that the content, which is committed, has reached the revision.

    The two do not move as one: a process killed in between leaves content that is ahead of its revision, and the
    changes that are then followed again find their work done.
    """
    fresh = folder / f"{REVISION_FILE}.new"
    try:
        fresh.write_text(str(revision), encoding="ascii")
        fresh.replace(folder / REVISION_FILE)
    except OSError as error:
        raise_unless_damage(error)
        raise NotFound("the keyword index was deleted") from error


def _file_stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def open_files(folder: Path, schema: Schema, lock: WriteLock, *, locked: bool) -> Index:
    """Open the index; one that is absent, damaged or of another format is made anew, empty, under the write lock.

    Raises `Unavailable` while another process holds that lock, and for what the operating system cannot do.
    """
    try:
        return _opened(folder, schema)
    except (ValueError, OSError) as error:
        raise_unless_damage(error)
    with nullcontext(True) if locked else lock.held(REPAIR_WAIT_SECONDS) as granted:
        if not granted:
            raise Unavailable("the keyword index is being repaired", retry_after=REPAIR_WAIT_SECONDS)
        try:
            # Another process may have made it meanwhile.
            return _opened(folder, schema)
        except (ValueError, OSError) as error:
            raise_unless_damage(error)
            return make_anew(folder, schema, error)


def make_anew(folder: Path, schema: Schema, why: Exception) -> Index:
    """Return an empty index in place of what is there; the caller holds the write lock."""
    if folder.exists():
        log.warning("a keyword index is made anew", extra={"folder": str(folder), "why": str(why)})
        shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise NotFound("the collection was deleted") from None
    Index(schema, path=str(folder))
    return _opened(folder, schema)


def _opened(folder: Path, schema: Schema) -> Index:
    if commit_stamp(folder) is None:
        raise FileNotFoundError(errno.ENOENT, "no index", str(folder))
    index = Index(schema, path=str(folder))
    # By default a thread would watch the folder; a look at each search is cheap and never late.
    index.config_reader("Manual")
    return index


def raise_unless_damage(error: Exception) -> None:
    """Raise what the operating system could not do: such an index is sound and must not be deleted."""
    failure = system_failure(error)
    if failure is not None:
        raise failure from error


def system_failure(error: Exception) -> FootnoteError | None:
    """Return the error to raise for a failure of the operating system, `None` for any other."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (match := _SYSTEM_ERROR.search(str(error))):
        number = int(match[1])
    if number is None or number == errno.ENOENT:
        return None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("the disk is full: the keyword index cannot be written")
    return Unavailable("the keyword index's files cannot be read or written now")
