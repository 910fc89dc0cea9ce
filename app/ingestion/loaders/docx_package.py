"""Open an Office Open XML package: decrypt it, bound what its parts inflate to, find parts by relationship."""

import io
import posixpath
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lxml import etree

from app.errors import DamagedDocument, DocumentLimitExceeded, MissingExtra, PasswordRequired

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_STRICT = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", W),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", M),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", R),
)
_OLE = b"\xd0\xcf\x11\xe0"
_TREE_BYTES_PER_XML_BYTE = 10


@dataclass(frozen=True, slots=True)
class Relationship:
    """Where a part points: the last word of the relation's type and the target part's name."""

    kind: str
    target: str


class Package:
    """The parts of one file; each is read at most once and never beyond the limit."""

    def __init__(self, file: BinaryIO, max_memory_bytes: int) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DamagedDocument("the document is not a whole ZIP container", hint="send the file again") from error
        self._bytes_left = max_memory_bytes // _TREE_BYTES_PER_XML_BYTE

    def xml(self, name: str) -> etree._Element | None:
        """Return the root of a part, or `None` when there is no such part; no entity is ever resolved."""
        data = self._part(name)
        if data is None:
            return None
        for strict, transitional in _STRICT:
            data = data.replace(strict, transitional.strip("{}").encode())
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, huge_tree=True)
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise DamagedDocument(f"the part {name} of the document is no well-formed XML: {error.msg}") from error

    def relationships(self, part: str = "") -> dict[str, Relationship]:
        """Return a part's relationships by id; those of the package for an empty name."""
        folder, name = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        found = {}
        for relation in root if root is not None else ():
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External" and target:
                path = (
                    target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                )
                found[relation.get("Id", "")] = Relationship(relation.get("Type", "").rpartition("/")[2], path)
        return found

    def related(self, kind: str, part: str = "") -> str | None:
        """Return the name of the part that `part` points to by a kind of relation."""
        return next((found.target for found in self.relationships(part).values() if found.kind == kind), None)

    def _part(self, name: str) -> bytes | None:
        try:
            with self._archive.open(name) as part:
                data = part.read(self._bytes_left + 1)
        except KeyError:
            return None
        except RuntimeError as error:
            raise PasswordRequired("the document's ZIP container is encrypted") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise DamagedDocument(f"the part {name} of the document cannot be unpacked") from error
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise DocumentLimitExceeded(
                "the document unpacks to more than the memory limit allows",
                hint="split the document, or raise FOOTNOTE_PARSE_MEMORY_BYTES",
            )
        return data


def open_package(path: Path, password: str | None, max_memory_bytes: int) -> Package:
    """Open a file, decrypted if need be; raises `PasswordRequired` and `DamagedDocument`."""
    data = path.read_bytes()
    if data.startswith(_OLE):
        data = _decrypted(data, password)
    return Package(io.BytesIO(data), max_memory_bytes)


def _decrypted(data: bytes, password: str | None) -> bytes:
    if password is None:
        raise PasswordRequired("the document is encrypted", hint="send its password in X-Document-Password")
    try:
        import msoffcrypto
        from msoffcrypto.exceptions import InvalidKeyError
    except ImportError as error:
        raise MissingExtra("encrypted Office files need the package msoffcrypto-tool") from error
    decrypted = io.BytesIO()
    try:
        container = msoffcrypto.OfficeFile(io.BytesIO(data))
        container.load_key(password=password, verify_password=True)
        container.decrypt(decrypted)
    except InvalidKeyError as error:
        raise PasswordRequired(
            "the password does not open the document", code="password_wrong", hint="send another password"
        ) from error
    except Exception as error:
        raise DamagedDocument("the encrypted document cannot be decrypted") from error
    return decrypted.getvalue()


def text_of(element: etree._Element | None, name: str = "val") -> str | None:
    """Return a WordprocessingML attribute, or `None` without the element or the attribute."""
    return None if element is None else element.get(W + name)


def number_of(element: etree._Element | None, name: str = "val") -> int | None:
    """Return a WordprocessingML attribute that is a whole number."""
    found = text_of(element, name)
    return int(found) if found is not None and found.lstrip("-").isdigit() else None
