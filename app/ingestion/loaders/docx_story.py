"""Walk through a Word document in reading order, with what python-docx's paragraphs and tables leave out."""

from collections.abc import Iterator
from dataclasses import dataclass

from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.part import XmlPart
from docx.oxml.coreprops import CT_CoreProperties
from lxml import etree

from app.domain import Extraction, Heading
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.docx_math import linear
from app.ingestion.loaders.docx_numbering import Numbering
from app.ingestion.loaders.docx_package import M, W, open_document, related, text_of
from app.ingestion.loaders.docx_styles import Styles
from app.ingestion.loaders.office_package import MC, R
from app.ingestion.port import Source

_LEFT_OUT = {W + "del", W + "moveFrom", W + "instrText", W + "delText", W + "rt", W + "pPr", W + "rPr", MC + "Fallback"}
_BREAKS = {
    W + "tab": "\t",
    W + "br": "\n",
    W + "cr": "\n",
    W + "noBreakHyphen": "\u2011",
    W + "softHyphen": "\u00ad",
    W + "ptab": "\t",
}
_NOTE_REFERENCES = {W + "footnoteReference": RT.FOOTNOTES, W + "endnoteReference": RT.ENDNOTES}
_WRAPPERS = {MC + "AlternateContent", MC + "Choice"} | {
    W + name for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo")
}
_DEEPEST_LIST = 8
_DRAWINGS = {W + "drawing", W + "pict", W + "object"}


def read(source: Source) -> Extraction:
    """Return a Word document's text with its headings; raises as `docx.load` says."""
    document = open_document(source)
    body = document.element.find(W + "body")
    if body is None:
        raise DamagedDocument("the container holds no Word document")
    assembly = Assembly(source.limits.max_characters)
    story = _Story(document, assembly)
    story.margins(body, "headerReference")
    story.blocks(body)
    story.notes()
    story.margins(body, "footerReference")
    return Extraction(
        text=assembly.text(),
        parser="docx",
        media_type=source.media_type,
        source_type="docx",
        title=_title(document)
        or story.title
        or next((found.title for found in story.headings if found.level == 1), None),
        headings=tuple(story.headings),
        warnings=assembly.notices(),
    )


def _title(document: XmlPart) -> str | None:
    properties = related(document.package, RT.CORE_PROPERTIES)
    if properties is None or not isinstance(properties.element, CT_CoreProperties):
        return None
    return on_one_line(properties.element.title_text) or None


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    level: int | None
    list_level: int | None
    boxes: list[etree._Element]


class _Story:
    """Write blocks of the document into the assembly, counting list items on the way."""

    def __init__(self, document: XmlPart, assembly: Assembly) -> None:
        self.headings: list[Heading] = []
        self.title: str | None = None
        self._document = document
        self._assembly = assembly
        self._styles = Styles(related(document, RT.STYLES))
        self._numbering = Numbering(related(document, RT.NUMBERING))
        self._marks: dict[tuple[str, str], int] = {}
        self._after_list = False

    def margins(self, body: etree._Element, kind: str) -> None:
        """Write each header or footer that a section refers to, equal ones once."""
        ids = (reference.get(R + "id") for reference in body.iter(W + kind))
        parts = dict.fromkeys(self._document.related_parts.get(id_) for id_ in ids)
        texts = dict.fromkeys("\n".join(self._lines(part.element)) for part in parts if part)
        for text in filter(str.strip, texts):
            self._assembly.add(text)

    def notes(self) -> None:
        """Write the footnotes and endnotes that the body refers to, with their marks."""
        parts = {kind: related(self._document, kind) for kind in _NOTE_REFERENCES.values()}
        notes = {(kind, text_of(note, "id")): note for kind, part in parts.items() if part for note in part.element}
        # What a note refers to is not followed: it may be the note itself.
        for noted, mark in tuple(self._marks.items()):
            if noted in notes:
                self._assembly.add(f"[{mark}] " + "\n".join(self._lines(notes[noted])).strip())

    def blocks(self, container: etree._Element) -> None:
        """Write the paragraphs and tables of a container in their order."""
        for element in _flat(container):
            if element.tag == W + "p":
                self._write(element)
            elif element.tag == W + "tbl":
                self._table(element)

    def _write(self, element: etree._Element) -> None:
        paragraph = self._paragraph(element)
        is_item = paragraph.list_level is not None and paragraph.level is None
        if paragraph.text.strip():
            indent = "  " * min(paragraph.list_level or 0, _DEEPEST_LIST) if is_item else ""
            separator = "\n" if is_item and self._after_list else "\n\n"
            start = self._assembly.add(indent + paragraph.text.strip(), separator)
            self._after_list = is_item
            if paragraph.level:
                title = on_one_line(paragraph.text)
                self.headings.append(Heading(min(paragraph.level, 6), title, start))
        for box in paragraph.boxes:
            self.blocks(box)

    def _table(self, table: etree._Element) -> None:
        rows = [[cell for cell in _flat(row) if cell.tag == W + "tc"] for row in _rows(table)]
        if all(len(row) <= 1 for row in rows) or self._has_headings(table):
            # A table that only frames or places text reads as that text.
            for row in rows:
                for cell in row:
                    self.blocks(cell)
            return
        separator = "\n\n"
        for row in rows:
            cells = [on_one_line(" ".join(self._lines(cell))) for cell in row]
            if any(cells):
                self._assembly.add(" | ".join(cells), separator)
                separator = "\n"
        self._after_list = False

    def _has_headings(self, table: etree._Element) -> bool:
        return any(self._styles.of(paragraph).level for paragraph in table.iter(W + "p"))

    def _lines(self, container: etree._Element) -> Iterator[str]:
        """Yield a container's text line by line, for places that hold no blocks: cells, margins and notes."""
        for element in _flat(container):
            if element.tag == W + "p":
                paragraph = self._paragraph(element)
                if paragraph.text.strip():
                    yield paragraph.text.strip()
                for box in paragraph.boxes:
                    yield from self._lines(box)
            elif element.tag == W + "tbl":
                for row in _rows(element):
                    cells = [on_one_line(" ".join(self._lines(cell))) for cell in _flat(row)]
                    yield " | ".join(cells)

    def _paragraph(self, element: etree._Element) -> _Paragraph:
        style = self._styles.of(element)
        boxes: list[etree._Element] = []
        text = "".join(self._inline(element, boxes))
        if not text.strip():
            return _Paragraph(text, None, None, boxes)
        if style.is_title and self.title is None:
            self.title = on_one_line(text)
        if style.list_id in (None, "0"):
            return _Paragraph(text, style.level, None, boxes)
        place = style.list_level if style.list_level is not None else (style.level or 1) - 1
        label = self._numbering.label(style.list_id or "", place)
        return _Paragraph(f"{label} {text.strip()}" if label else text, style.level, place, boxes)

    def _inline(self, element: etree._Element, boxes: list[etree._Element]) -> Iterator[str]:
        """Yield a paragraph's text; the text boxes that float from it are put into `boxes`."""
        for child in element:
            tag = child.tag
            if tag == W + "t":
                yield child.text or ""
            elif tag in _BREAKS:
                yield _BREAKS[tag]
            elif tag in _NOTE_REFERENCES:
                noted = (_NOTE_REFERENCES[tag], text_of(child, "id") or "")
                yield f"[{self._marks.setdefault(noted, len(self._marks) + 1)}]"
            elif tag in _DRAWINGS:
                boxes.extend(_text_boxes(child))
            elif isinstance(tag, str) and tag.startswith(M):
                yield linear(child)
            elif tag not in _LEFT_OUT and not _is_hidden(child):
                yield from self._inline(child, boxes)


def _is_hidden(run: etree._Element) -> bool:
    if run.tag != W + "r":
        return False
    vanish = run.find(f"{W}rPr/{W}vanish")
    return vanish is not None and text_of(vanish) not in ("0", "false")


def _text_boxes(drawing: etree._Element) -> Iterator[etree._Element]:
    """Yield the outermost text boxes of a drawing; of two renditions of one drawing only the preferred."""
    for element in drawing:
        if element.tag == W + "txbxContent":
            yield element
        elif element.tag != MC + "Fallback":
            yield from _text_boxes(element)


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for row in _flat(table):
        if row.tag == W + "tr" and row.find(f"{W}trPr/{W}del") is None:
            yield row


def _flat(container: etree._Element) -> Iterator[etree._Element]:
    """Yield children, with those of content controls and other wrappers in their place."""
    for element in container:
        if element.tag in _WRAPPERS:
            yield from _flat(element)
        elif isinstance(element.tag, str):
            yield element
