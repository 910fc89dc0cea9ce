"""Write a tree of HTML elements as text: blocks, list items and table rows on lines of their own."""

import re
from collections.abc import Iterator

from lxml import etree

from app.domain import Heading
from app.ingestion.loaders.canonical import Assembly, on_one_line

_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dir", "div", "dl"),
    *("dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li"),
    *("main", "menu", "nav", "p", "section", "summary", "tbody", "tfoot", "thead", "title", "tr", "td", "th"),
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LINE_BREAK = "\v"
_SPACE = re.compile(r"[ \t\n\r\f]+")
_SPACE_AT_BREAK = re.compile(r" *\v[ \v]*")
_LIST_MARK = re.compile(r"[-*•‣·▪◦●○■–—]|\(?\w{1,4}[.)]")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MAX_DEPTH = 200
_MOSTLY_EMPTY = 0.4


def storable(text: str | None) -> str:
    """Return text that an element takes: character references may have put controls into a page."""
    return _NOT_IN_XML.sub("", text or "")


def render(content: etree._Element, assembly: Assembly) -> list[Heading]:
    """Write `content` into `assembly` and return its headings."""
    rendering = _Rendering(assembly)
    rendering.element(content, depth=0, lists=0)
    rendering.end_block()
    return rendering.headings


class _Rendering:
    """Collect inline text until a block ends; `_mark` is put before the next block, `_separator` before that."""

    def __init__(self, assembly: Assembly) -> None:
        self.headings: list[Heading] = []
        self._assembly = assembly
        self._inline: list[str] = []
        self._separator = "\n\n"
        self._mark = ""

    def element(self, element: etree._Element, depth: int, lists: int) -> None:
        """Write one element; `lists` counts the lists around it."""
        tag = element.tag
        if not isinstance(tag, str):
            return
        if depth > _MAX_DEPTH:
            self._inline.extend(element.itertext())
        elif tag == "br":
            self._inline.append(_LINE_BREAK)
        elif tag in _HEADINGS:
            self._heading(element, _HEADINGS[tag])
        elif tag in ("ul", "ol"):
            self._list(element, depth, lists)
        elif tag == "table" and not _is_layout(element):
            self._lines(_table_lines(element))
        elif tag == "pre":
            self._lines([_preformatted(element)])
        elif tag in _BLOCKS or tag == "table":
            self.end_block()
            self._children(element, depth, lists)
            self.end_block()
        else:
            self._children(element, depth, lists)

    def end_block(self) -> None:
        """Write what was collected as one block, unless it is only white space."""
        text = _SPACE_AT_BREAK.sub("\n", _SPACE.sub(" ", "".join(self._inline))).strip()
        self._inline.clear()
        if text:
            self._write(text)

    def _write(self, text: str) -> int:
        start = self._assembly.add(self._mark + text, self._separator) + len(self._mark)
        self._separator, self._mark = "\n\n", " " * len(self._mark)
        return start

    def _children(self, element: etree._Element, depth: int, lists: int) -> None:
        if element.text:
            self._inline.append(element.text)
        for child in element:
            self.element(child, depth + 1, lists)
            if child.tail:
                self._inline.append(child.tail)

    def _heading(self, element: etree._Element, level: int) -> None:
        self.end_block()
        title = on_one_line("".join(element.itertext()))
        if title:
            self.headings.append(Heading(level, title, self._write(title)))

    def _list(self, element: etree._Element, depth: int, lists: int) -> None:
        self.end_block()
        mark_around = self._mark
        number = 0
        for child in element:
            if child.tag != "li":
                self.element(child, depth + 1, lists)
                continue
            number += 1
            self._separator = "\n" if number > 1 or lists else "\n\n"
            self._mark = "  " * lists + (f"{number}. " if element.tag == "ol" else "- ")
            self._children(child, depth + 1, lists + 1)
            self.end_block()
        self._mark = mark_around
        self._separator = "\n" if lists else "\n\n"

    def _lines(self, lines: list[str]) -> None:
        self.end_block()
        for line in lines:
            if line.strip():
                self._write(line)
                self._separator = "\n"
        self._separator = "\n\n"


def _preformatted(element: etree._Element) -> str:
    for line_break in element.iter("br"):
        line_break.tail = "\n" + storable(line_break.tail)
    return "".join(element.itertext()).strip("\n")


def _is_layout(table: etree._Element) -> bool:
    """Tell a table that places parts of a page from one that holds data."""
    if next(table.iterdescendants("table", *_HEADINGS), None) is not None:
        return True
    return len(list(table.iterdescendants("td", "th"))) == 1


def _table_lines(table: etree._Element) -> list[str]:
    rows = [[_cell(cell) for cell in row.iterchildren("td", "th")] for row in table.iter("tr")]
    cells = [cell for row in rows for cell in row]
    if cells.count("") > _MOSTLY_EMPTY * len(cells):
        # Filings put spacer cells between the columns.
        rows = [[cell for cell in row if cell] for row in rows]
    captions = [_cell(caption) for caption in table.iterchildren("caption")]
    return [*captions, *_joined(rows)]


def _joined(rows: list[list[str]]) -> Iterator[str]:
    for row in rows:
        filled = [cell for cell in row if cell]
        if len(filled) == 2 and _LIST_MARK.fullmatch(filled[0]):
            yield " ".join(filled)
        elif filled:
            yield " | ".join(row)


def _cell(cell: etree._Element) -> str:
    for element in cell.iterdescendants():
        if element.tag in _BLOCKS or element.tag == "br":
            element.text = (" - " if element.tag == "li" else " ") + storable(element.text)
            element.tail = " " + storable(element.tail)
    return on_one_line("".join(cell.itertext()))
