"""DOCX: headers, then the body in its order, then footnotes and footers. Insertions are in, deletions are out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lxml import etree

from app.domain import Extraction, Heading
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.docx_math import linear
from app.ingestion.loaders.docx_numbering import Numbering
from app.ingestion.loaders.docx_package import MC, M, Package, R, W, number_of, open_package, text_of
from app.ingestion.loaders.docx_styles import Styles
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",)

_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_LEFT_OUT = {W + "del", W + "moveFrom", W + "instrText", W + "delText", W + "rt", W + "pPr", W + "rPr", MC + "Fallback"}
_BREAKS = {
    W + "tab": "\t",
    W + "br": "\n",
    W + "cr": "\n",
    W + "noBreakHyphen": "\u2011",
    W + "softHyphen": "\u00ad",
    W + "ptab": "\t",
}
_NOTE_REFERENCES = {W + "footnoteReference": "footnotes", W + "endnoteReference": "endnotes"}
_DRAWINGS = {W + "drawing", W + "pict", W + "object"}
_MAX_DEPTH = 60


def load(source: Source) -> Extraction:
    """Read a DOCX; raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded` and `EmptyDocument`."""
    package = open_package(source.path, source.password, source.limits.parse_memory_bytes)
    main = package.related("officeDocument") or "word/document.xml"
    root = package.xml(main)
    body = root.find(W + "body") if root is not None else None
    if body is None:
        raise DamagedDocument("the container holds no Word document")
    assembly = Assembly(source.limits.max_characters)
    story = _Story(package, main, assembly)
    story.margins(body, "headerReference")
    story.blocks(body)
    story.notes()
    story.margins(body, "footerReference")
    return Extraction(
        text=assembly.text(),
        parser="docx",
        media_type=source.media_type,
        source_type="docx",
        title=_title(package)
        or story.title
        or next((found.title for found in story.headings if found.level == 1), None),
        headings=tuple(story.headings),
        warnings=assembly.notices(),
    )


def _title(package: Package) -> str | None:
    name = package.related("core-properties")
    root = package.xml(name) if name else None
    title = root.findtext(_TITLE) if root is not None else None
    return on_one_line(title) or None if title else None


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    level: int | None
    list_level: int | None
    boxes: list[etree._Element]


class _Story:
    """Write blocks of the document into the assembly, counting list items on the way."""

    def __init__(self, package: Package, main: str, assembly: Assembly) -> None:
        self.headings: list[Heading] = []
        self.title: str | None = None
        self._package = package
        self._relationships = package.relationships(main)
        self._assembly = assembly
        self._styles = Styles(self._related("styles"))
        self._numbering = Numbering(self._related("numbering"))
        self._noted: list[tuple[str, str]] = []
        self._after_list = False

    def _related(self, kind: str) -> etree._Element | None:
        target = next((found.target for found in self._relationships.values() if found.kind == kind), None)
        return self._package.xml(target) if target else None

    def margins(self, body: etree._Element, kind: str) -> None:
        """Write each header or footer that a section refers to, equal ones once."""
        ids = dict.fromkeys(reference.get(R + "id", "") for reference in body.iter(W + kind))
        written: set[str] = set()
        for target in dict.fromkeys(self._relationships[id_].target for id_ in ids if id_ in self._relationships):
            root = self._package.xml(target)
            text = "\n".join(self._lines(root)) if root is not None else ""
            if text.strip() and text not in written:
                written.add(text)
                self._assembly.add(text)

    def notes(self) -> None:
        """Write the footnotes and endnotes that the body refers to, with their marks."""
        parts = {kind: self._related(kind) for kind in dict.fromkeys(kind for kind, _ in self._noted)}
        for mark, (kind, id_) in enumerate(self._noted, 1):
            root = parts[kind]
            for note in root if root is not None else ():
                if text_of(note, "id") == id_:
                    self._assembly.add(f"[{mark}] " + "\n".join(self._lines(note)).strip())

    def blocks(self, container: etree._Element, depth: int = 0) -> None:
        """Write the paragraphs and tables of a container in their order."""
        for element in _flat(container):
            if element.tag == W + "p":
                self._write(element, depth)
            elif element.tag == W + "tbl" and depth < _MAX_DEPTH:
                self._table(element, depth)

    def _write(self, element: etree._Element, depth: int) -> None:
        paragraph = self._paragraph(element)
        is_item = paragraph.list_level is not None and paragraph.level is None
        if paragraph.text.strip():
            indent = "  " * (paragraph.list_level or 0) if is_item else ""
            separator = "\n" if is_item and self._after_list else "\n\n"
            start = self._assembly.add(indent + paragraph.text.strip(), separator)
            self._after_list = is_item
            if paragraph.level:
                title = on_one_line(paragraph.text)
                self.headings.append(Heading(min(paragraph.level, 6), title, start))
        for box in paragraph.boxes if depth < _MAX_DEPTH else ():
            self.blocks(box, depth + 1)

    def _table(self, table: etree._Element, depth: int) -> None:
        rows = [[cell for cell in _flat(row) if cell.tag == W + "tc"] for row in _rows(table)]
        if all(len(row) <= 1 for row in rows) or self._has_headings(table):
            # A table that only frames or places text reads as that text.
            for row in rows:
                for cell in row:
                    self.blocks(cell, depth + 1)
            return
        separator = "\n\n"
        for row in rows:
            cells = [on_one_line(" ".join(self._lines(cell))) for cell in row]
            if any(cells):
                self._assembly.add(" | ".join(cells), separator)
                separator = "\n"
        self._after_list = False

    def _has_headings(self, table: etree._Element) -> bool:
        styles = (text_of(style) for style in table.iter(W + "pStyle"))
        return any(self._styles.get(style).level for style in styles)

    def _lines(self, container: etree._Element, depth: int = 0) -> Iterator[str]:
        """Yield a container's text line by line, for places that hold no blocks: cells, margins and notes."""
        for element in _flat(container) if depth < _MAX_DEPTH else ():
            if element.tag == W + "p":
                paragraph = self._paragraph(element)
                if paragraph.text.strip():
                    yield paragraph.text.strip()
                for box in paragraph.boxes:
                    yield from self._lines(box, depth + 1)
            elif element.tag == W + "tbl":
                for row in _rows(element):
                    cells = [on_one_line(" ".join(self._lines(cell, depth + 1))) for cell in _flat(row)]
                    yield " | ".join(cells)

    def _paragraph(self, element: etree._Element) -> _Paragraph:
        properties = element.find(W + "pPr")
        style = self._styles.get(text_of(properties.find(W + "pStyle")) if properties is not None else None)
        outline = number_of(properties.find(W + "outlineLvl")) if properties is not None else None
        level = outline + 1 if outline is not None and outline < 9 else style.level
        list_id, list_level = style.list_id, style.list_level
        numbering = properties.find(W + "numPr") if properties is not None else None
        if numbering is not None:
            list_id = text_of(numbering.find(W + "numId")) or list_id
            direct = number_of(numbering.find(W + "ilvl"))
            list_level = list_level if direct is None else direct
        boxes: list[etree._Element] = []
        text = "".join(self._inline(element, boxes))
        if style.is_title and self.title is None and text.strip():
            self.title = on_one_line(text)
        if list_id in (None, "0") or not text.strip():
            return _Paragraph(text, level if text.strip() else None, None, boxes)
        place = list_level if list_level is not None else (level or 1) - 1
        label = self._numbering.label(list_id or "", place)
        return _Paragraph(f"{label} {text.strip()}" if label else text, level, place, boxes)

    def _inline(self, element: etree._Element, boxes: list[etree._Element]) -> Iterator[str]:
        """Yield a paragraph's text; the text boxes that float from it are put into `boxes`."""
        for child in element:
            tag = child.tag
            if tag == W + "t":
                yield child.text or ""
            elif tag in _BREAKS:
                yield _BREAKS[tag]
            elif tag in _NOTE_REFERENCES:
                self._noted.append((_NOTE_REFERENCES[tag], text_of(child, "id") or ""))
                yield f"[{len(self._noted)}]"
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
    stack = [drawing]
    while stack:
        element = stack.pop()
        if element.tag == W + "txbxContent":
            yield element
        elif element.tag != MC + "Fallback":
            stack.extend(reversed(element))


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for row in _flat(table):
        if row.tag == W + "tr" and row.find(f"{W}trPr/{W}del") is None:
            yield row


_TRANSPARENT = {
    W + "sdt",
    W + "sdtContent",
    W + "customXml",
    W + "ins",
    W + "moveTo",
    MC + "AlternateContent",
    MC + "Choice",
}


def _flat(container: etree._Element) -> Iterable[etree._Element]:
    """Yield children, with those of content controls and other wrappers in their place."""
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        if element.tag in _TRANSPARENT:
            stack.extend(reversed(element))
        elif isinstance(element.tag, str):
            yield element
