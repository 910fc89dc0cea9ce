"""Stream the rows of a worksheet: no more of it is in memory than a row, the shared strings and the merged ranges."""

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree

from app.ingestion.loaders.archive import Archive, Inflating, unreadable_xml
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.sheets import Cell, Filled, Row
from app.ingestion.loaders.xlsx_values import Shown, number

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_COLUMN = re.compile(r"[A-Z]{1,3}")
_LONGEST_TAG = 300
_BLOCK_BYTES = 1 << 20
_WIDEST_MERGE = 256
_MIDNIGHT = "T00:00:00"


@dataclass(frozen=True, slots=True)
class Workbook:
    """What the cells of every sheet refer to."""

    strings: Sequence[Cell]
    shown: Mapping[str, Shown]
    from_1904: bool


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged range; rows from 1 and columns from 0, all inclusive."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int


class Worksheet:
    """The rows of one part; `formulas_without_value` counts as they are read."""

    def __init__(self, archive: Archive, part: str, workbook: Workbook) -> None:
        self.formulas_without_value = 0
        self._archive = archive
        self._part = part
        self._workbook = workbook

    def rows(self) -> Generator[Row]:
        """Yield the rows that hold cells, merged cells filled; raises as `Archive.stream` and `parse_xml`."""
        merges = _Merges(self._merges())
        last = 0
        with self._archive.stream(self._part) as stream:
            for element in _elements(stream, "row"):
                number_ = element.get("r", "")
                last = int(number_) if number_.isdecimal() and len(number_) < 8 else last + 1
                if len(element):
                    yield Row(last, merges.fill(last, dict(self._cells(element))))

    def _merges(self) -> Collection[Merge]:
        """Return the merged ranges, one for each first cell; they stand behind the rows that they change."""
        found: dict[tuple[bytes, bytes], Merge] = {}
        with self._archive.stream(self._part) as stream:
            before = b""
            while stream and (block := stream.read(_BLOCK_BYTES)):
                data = before + block
                last = 0
                for match in _MERGED.finditer(data):
                    first_column, first_row, last_column, last_row = match.groups()
                    columns = column_of(first_column.decode()) or 0, column_of(last_column.decode()) or 0
                    found[first_column, first_row] = Merge(int(first_row), int(last_row), *columns)
                    last = match.end()
                before = data[max(last, len(data) - _LONGEST_TAG) :]
        return found.values()

    def _cells(self, row: etree._Element) -> Iterator[tuple[int, Cell]]:
        place = -1
        for element in row.iterchildren("{*}c"):
            named = column_of(element.get("r", "").rstrip("0123456789"))
            place = place + 1 if named is None else named
            cell = self._cell(element)
            if cell is not None and cell.text:
                yield place, cell

    def _cell(self, element: etree._Element) -> Cell | None:
        kind = element.get("t", "n")
        if kind == "inlineStr":
            return Cell(on_one_line(" ".join(map(string, element.iterchildren("{*}is")))), is_text=True)
        value = next(element.iterchildren("{*}v"), None)
        raw = "" if value is None else value.text or ""
        if not raw:
            # A formula that gives an empty text says so by its kind.
            self.formulas_without_value += kind == "n" and next(element.iterchildren("{*}f"), None) is not None
            return None
        if kind == "s":
            return self._shared(raw)
        if kind == "n":
            return Cell(self._number(raw, element.get("s", "0")), is_text=False)
        return self._seldom(kind, raw)

    def _seldom(self, kind: str, raw: str) -> Cell:
        if kind == "b":
            return Cell("true" if raw.strip() == "1" else "false", is_text=False)
        if kind == "d":
            return Cell(raw.removesuffix(_MIDNIGHT).replace("T", " "), is_text=False)
        return Cell(on_one_line(raw), is_text=kind == "str")

    def _shared(self, raw: str) -> Cell | None:
        strings = self._workbook.strings
        place = int(raw) if raw.isdecimal() and len(raw) < 10 else len(strings)
        return strings[place] if place < len(strings) else None

    def _number(self, raw: str, style: str) -> str:
        shown = self._workbook.shown.get(style, Shown.NUMBER)
        if shown is Shown.NUMBER and raw.isdecimal() and len(raw) < 16:
            return raw
        return number(raw, shown, from_1904=self._workbook.from_1904)


class _Merges:
    """Fill merged cells row by row, from the top."""

    def __init__(self, merges: Collection[Merge]) -> None:
        self._waiting = sorted(merges, key=lambda merge: merge.first_row, reverse=True)
        # By column, since merges of a row do not overlap; files that overlap them would take a step for each.
        self._open: dict[int, tuple[int, Cell]] = {}

    def fill(self, row: int, cells: dict[int, Cell]) -> dict[int, Cell]:
        """Return a row's cells in order, with the value of each merge in all that it covers."""
        if not self._open and not (self._waiting and self._waiting[-1].first_row <= row):
            return cells
        self._open = {column: below for column, below in self._open.items() if below[0] >= row}
        for column, (_, cell) in self._open.items():
            cells.setdefault(column, cell)
        while self._waiting and self._waiting[-1].first_row <= row:
            merge = self._waiting.pop()
            begins_with = cells.get(merge.first_column)
            if merge.first_row == row and begins_with is not None:
                columns = range(merge.first_column, min(merge.last_column, merge.first_column + _WIDEST_MERGE) + 1)
                left, above = (begins_with._replace(filled=where) for where in (Filled.LEFT, Filled.ABOVE))
                for column in columns:
                    cells.setdefault(column, left)
                if merge.last_row > row:
                    self._open |= dict.fromkeys(columns, (merge.last_row, above))
        return dict(sorted(cells.items()))


def shared_strings(archive: Archive, part: str) -> list[Cell]:
    """Return the cells of text that others refer to by their place, without readings of ideographs."""
    with archive.stream(part) as stream:
        return [Cell(on_one_line(string(element)), is_text=True) for element in _elements(stream, "si")]


def string(element: etree._Element) -> str:
    """Return a string's text, of all its runs."""
    texts = element.iterchildren("{*}t", "{*}r")
    return "".join((each.text if each.tag.endswith("}t") else each.findtext("{*}t")) or "" for each in texts)


@lru_cache(maxsize=1024)
def column_of(name: str) -> int | None:
    """Return the place of a column from 0 by its letters, `None` where they are none."""
    if not _COLUMN.fullmatch(name):
        return None
    place = 0
    for letter in name:
        place = place * 26 + ord(letter) - ord("A") + 1
    return place - 1


def _elements(stream: Inflating | None, name: str) -> Iterator[etree._Element]:
    """Yield the elements of a name one by one, each forgotten with all before it when the next one is asked for."""
    if stream is None:
        return
    try:
        for _, element in etree.iterparse(stream, tag=f"{{*}}{name}", resolve_entities=False, remove_comments=True):
            yield element
            element.clear(keep_tail=False)
            parent = element.getparent()
            while parent is not None and parent[0] is not element:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise unreadable_xml(error) from error
