"""Open a ZIP container safely: its entries are counted, and what it inflates to stays within the limits.

The one door for every format that is a ZIP container. An archive inside an archive is never opened.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lxml import etree

from app.errors import DamagedDocument, DocumentLimitExceeded, PasswordRequired
from app.ingestion.port import LoadLimits

MAX_ENTRIES = 50_000

_TREE_BYTES_PER_XML_BYTE = 10
_BLOCK_BYTES = 1 << 20


class Archive:
    """The parts of a ZIP container, by name without regard to case.

    `bytes_left` is what may still be inflated into memory, `bytes_to_stream` what may still pass through.
    """

    def __init__(self, container: zipfile.ZipFile, bytes_left: int, bytes_to_stream: int) -> None:
        self.names = tuple(container.namelist())
        self._container = container
        self._parts = {_folded(part.filename): part for part in container.infolist()}
        self._bytes_left = bytes_left
        self._bytes_to_stream = bytes_to_stream

    def has(self, name: str) -> bool:
        """Return whether there is a part of that name."""
        return _folded(name) in self._parts

    def read(self, name: str) -> bytes | None:
        """Return a part, or `None` when there is none of that name; raises `DocumentLimitExceeded`."""
        entry = self._parts.get(_folded(name))
        if entry is None:
            return None
        with _told_as_damage(), self._container.open(entry) as part:
            data = part.read(self._bytes_left + 1)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise _unpacks_to_too_much()
        return data

    def tree(self, name: str) -> etree._Element | None:
        """Return the root of a part that is XML, or `None` when there is none of that name; raises as `parse_xml`."""
        data = self.read(name)
        return None if data is None else parse_xml(data)

    @contextmanager
    def stream(self, name: str) -> Iterator["Inflating | None"]:
        """Open a part to be read piece by piece, or give `None` when there is none of that name."""
        entry = self._parts.get(_folded(name))
        if entry is None:
            yield None
            return
        with _told_as_damage():
            part = self._container.open(entry)
        with part:
            yield Inflating(part, self)

    def count_streamed(self, amount: int) -> None:
        """Take inflated bytes off what may pass through; raises `DocumentLimitExceeded`."""
        self._bytes_to_stream -= amount
        if self._bytes_to_stream < 0:
            raise _unpacks_to_too_much()


class Inflating:
    """A part that inflates as it is read."""

    def __init__(self, part: IO[bytes], archive: Archive) -> None:
        self._part = part
        self._archive = archive

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` at most; raises `DamagedDocument` and `DocumentLimitExceeded`."""
        with _told_as_damage():
            data = self._part.read(min(size, _BLOCK_BYTES) if size > 0 else _BLOCK_BYTES)
        self._archive.count_streamed(len(data))
        return data


@contextmanager
def open_archive(file: Path | bytes, limits: LoadLimits) -> Iterator[Archive]:
    """Open a container; raises `DamagedDocument`, and `DocumentLimitExceeded` for one with too many entries."""
    with _told_as_damage():
        container = zipfile.ZipFile(io.BytesIO(file) if isinstance(file, bytes) else file)
    with container:
        if len(container.infolist()) > MAX_ENTRIES:
            raise DocumentLimitExceeded(f"the container holds more than {MAX_ENTRIES} files", hint="split the document")
        yield Archive(container, limits.parse_memory_bytes // _TREE_BYTES_PER_XML_BYTE, limits.parse_memory_bytes)


def parse_xml(data: bytes) -> etree._Element:
    """Return the root of a part; entities are not resolved, comments and processing instructions are gone.

    Raises `DamagedDocument`, and `DocumentLimitExceeded` for what is nested too deeply or expands without measure.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise unreadable_xml(error) from error


def unreadable_xml(error: etree.XMLSyntaxError) -> DamagedDocument | DocumentLimitExceeded | MemoryError:
    """Return the error for a part that the parser refused."""
    if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
        return MemoryError()
    if error.code == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return DocumentLimitExceeded(
            "a part of the document is nested too deeply or expands beyond all measure",
            hint="open the document in its program and save it anew",
        )
    return DamagedDocument(f"a part of the document is no well-formed XML: {error.msg}")


@contextmanager
def _told_as_damage() -> Iterator[None]:
    """Raise what reading a container raises as an error of the document."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise DamagedDocument("the document is not a whole ZIP container", hint="send the file again") from error
    except RuntimeError as error:
        raise PasswordRequired("the document's ZIP container is encrypted") from error


def _unpacks_to_too_much() -> DocumentLimitExceeded:
    return DocumentLimitExceeded(
        "the document unpacks to more than the memory limit allows",
        hint="split the document, or raise FOOTNOTE_PARSE_MEMORY_BYTES",
    )


def _folded(name: str) -> str:
    """Return the name as producers mean it: some write it in other letters or with backslashes."""
    return name.replace("\\", "/").lstrip("/").lower()
