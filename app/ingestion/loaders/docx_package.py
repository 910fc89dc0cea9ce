"""Open a Word package: give the parts that are read, inflated within the limits, to python-docx."""

import re
from typing import cast

from docx.opc.constants import CONTENT_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.oxml import CT_Relationship, oxml_parser
from docx.opc.packuri import PACKAGE_URI, PackURI
from docx.opc.part import Part, XmlPart
from docx.package import Package
from lxml import etree

from app.errors import DamagedDocument
from app.ingestion.loaders.archive import Archive, open_archive, unreadable_xml
from app.ingestion.loaders.encryption import decrypted
from app.ingestion.loaders.office_package import transitional
from app.ingestion.port import Source

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

_READ = {
    *(RT.OFFICE_DOCUMENT, RT.CORE_PROPERTIES, RT.STYLES, RT.NUMBERING),
    *(RT.HEADER, RT.FOOTER, RT.FOOTNOTES, RT.ENDNOTES),
}
_NUMBER = re.compile(r"-?\d{1,9}")


def open_document(source: Source) -> XmlPart:
    """Return the main part of a file, decrypted if need be; raises as `docx.load` says."""
    try:
        with open_archive(decrypted(source), source.limits) as archive:
            return _Reader(archive).main()
    except etree.XMLSyntaxError as error:
        raise unreadable_xml(error) from error


def related(source: Package | Part, kind: str) -> XmlPart | None:
    """Return the first part that `source` points to by a kind of relationship."""
    return next((cast("XmlPart", found.target_part) for found in source.rels.values() if found.reltype == kind), None)


class _Reader:
    """Give python-docx the parts that are read and present.

    `docx.Document` inflates all without one, and refuses what is strict, has macros, or relates to a part not there.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._package = Package()
        self._parts: dict[PackURI, XmlPart | None] = {}

    def main(self) -> XmlPart:
        """Return the main part, related to the others; raises `DamagedDocument` when there is none."""
        self._relate(self._package, PACKAGE_URI)
        main = related(self._package, RT.OFFICE_DOCUMENT) or self._part(PackURI("/word/document.xml"))
        if main is None:
            raise DamagedDocument("the container holds no Word document")
        self._relate(main, main.partname)
        return main

    def _relate(self, source: Package | Part, uri: PackURI) -> None:
        data = self._inflated(uri.rels_uri)
        for relation in etree.fromstring(data, oxml_parser) if data else ():
            if isinstance(relation, CT_Relationship) and relation.reltype in _READ and relation.target_ref:
                part = self._part(PackURI.from_rel_ref(uri.baseURI, relation.target_ref))
                if part:
                    source.load_rel(relation.reltype, part, relation.rId)

    def _part(self, uri: PackURI) -> XmlPart | None:
        if uri not in self._parts:
            data = self._inflated(uri)
            part = self._parts[uri] = XmlPart.load(uri, CONTENT_TYPE.XML, data, self._package) if data else None
            if part:
                etree.strip_tags(part.element, etree.Comment)
        return self._parts[uri]

    def _inflated(self, uri: PackURI) -> bytes | None:
        """Return a part in the transitional namespaces, or `None` when there is no such part."""
        data = self._archive.read(uri.membername)
        return None if data is None else transitional(data)


def text_of(element: etree._Element | None, name: str = "val") -> str | None:
    """Return a WordprocessingML attribute, or `None` without the element or the attribute."""
    return None if element is None else element.get(W + name)


def number_of(element: etree._Element | None, name: str = "val") -> int | None:
    """Return a WordprocessingML attribute that is a whole number."""
    found = text_of(element, name)
    return int(found) if found is not None and _NUMBER.fullmatch(found) else None
