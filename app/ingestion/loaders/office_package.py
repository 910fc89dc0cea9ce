"""Parts of an Office Open XML package and how they relate, in the transitional namespaces whatever the file uses."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lxml import etree

from app.errors import DamagedDocument
from app.ingestion.loaders.archive import Archive, open_archive, parse_xml
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.encryption import decrypted
from app.ingestion.port import Source

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


@dataclass(frozen=True, slots=True)
class Relation:
    """What one part refers to: the last word of the relation's type, and the name of the other part."""

    kind: str
    target: str


class Package:
    """The parts of an open package by name."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    def tree(self, part: str) -> etree._Element | None:
        """Return the root of a part, or `None` when it is not there."""
        data = self.archive.read(part)
        return None if data is None else parse_xml(transitional(data))

    def relations(self, part: str) -> Mapping[str, Relation]:
        """Return what a part refers to inside the package, by the ids that it uses."""
        folder, name = posixpath.split(part)
        root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        return {} if root is None else dict(_inside(root, folder))

    def main_part(self, usual: str) -> str:
        """Return the name of the document's main part; raises `DamagedDocument` when there is none."""
        named = (relation.target for relation in self.relations("").values() if relation.kind == "officeDocument")
        for part in (*named, usual):
            if self.archive.has(part):
                return part
        raise DamagedDocument("the container holds no Office document")

    def title(self) -> str | None:
        """Return the title among the document's properties."""
        for relation in self.relations("").values():
            properties = self.tree(relation.target) if relation.kind == "core-properties" else None
            if properties is not None:
                return on_one_line(properties.findtext(_TITLE) or "") or None
        return None


def transitional(data: bytes) -> bytes:
    """Return a part in the namespaces that most files use, also where it is written in the strict ones."""
    return _STRICT.sub(_TRANSITIONAL, data)


@contextmanager
def open_package(source: Source) -> Iterator[Package]:
    """Open a package, decrypted if need be.

    Raises `PasswordRequired`, `DamagedDocument` and `DocumentLimitExceeded`.
    """
    with open_archive(decrypted(source), source.limits) as archive:
        yield Package(archive)


def _inside(relations: etree._Element, folder: str) -> Iterator[tuple[str, Relation]]:
    for relation in relations.iterchildren("{*}Relationship"):
        target = relation.get("Target", "").partition("#")[0]
        if target and relation.get("TargetMode") != "External":
            kind = relation.get("Type", "").rpartition("/")[2]
            part = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            yield relation.get("Id", ""), Relation(kind, part)
