"""Write the rows of a sheet as records, `column: value; column: value`, whatever program the sheet comes from."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import NamedTuple

from app.domain import Extraction, Heading, Notice
from app.errors import EmptyDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.port import Source

_YEAR = re.compile(r"(19|20)\d\d")
_LONGEST_HEAD = 120
_MOST_HEAD_ROWS = 4
_NAMED_SHEETS = 100


class Filled(Enum):
    """Where a cell has its value from: itself, or the cell that a merge begins with."""

    ITSELF = 0
    LEFT = 1
    ABOVE = 2


class Cell(NamedTuple):
    """A cell that says something, in canonical form on one line; numbers, dates, booleans and errors are no text."""

    text: str
    is_text: bool
    filled: Filled = Filled.ITSELF


class Row(NamedTuple):
    """A row's number, from 1, and its cells by column, from 0, in order."""

    number: int
    cells: Mapping[int, Cell]


@dataclass(slots=True)
class Sheets:
    """Write sheet after sheet: a heading for each, where each record begins and which row it was."""

    assembly: Assembly
    hidden: list[str] = field(default_factory=list)
    """The names of sheets that were left out."""
    _headings: list[Heading] = field(default_factory=list)
    _records: list[int] = field(default_factory=list)
    _record_numbers: list[int] = field(default_factory=list)

    def write(self, name: str, rows: Iterator[Row], remarks: Sequence[str] = ()) -> None:
        """Write a sheet: its name, its rows without empty ones, and text that floats above the cells; or nothing."""
        filled = (row for row in rows if any(cell.filled is not Filled.ABOVE for cell in row.cells.values()))
        first = next(filled, None)
        if first is None and not remarks:
            return
        title = on_one_line(name) or "Sheet"
        self._headings.append(Heading(1, title, self.assembly.add(title)))
        separator = "\n\n"
        for number, line in _Tables(chain((first,), filled)).lines() if first else ():
            start = self.assembly.add(line, separator)
            separator = "\n"
            if number is not None:
                self._records.append(start)
                self._record_numbers.append(number)
        for remark in remarks:
            self.assembly.add(remark)

    def extraction(self, source: Source, kind: str, title: str | None) -> Extraction:
        """Return what was written of a file of this kind; raises `EmptyDocument` for nothing."""
        if not self._headings:
            raise EmptyDocument(
                "the workbook has no text" + (" but in hidden sheets" if self.hidden else ""),
                hint="show the sheets that shall be read" if self.hidden else None,
            )
        names = [heading.title for heading in self._headings[:_NAMED_SHEETS]]
        return Extraction(
            text=self.assembly.text(),
            parser=kind,
            media_type=source.media_type,
            source_type=kind,
            title=title,
            headings=tuple(self._headings),
            warnings=(*self.assembly.notices(), *self._notices()),
            details={"records": len(self._records), "sheets": names},
            records=tuple(self._records),
            record_numbers=tuple(self._record_numbers),
        )

    def _notices(self) -> Iterator[Notice]:
        if self.hidden:
            detail = f"{len(self.hidden)} hidden sheets were left out"
            yield Notice("hidden_sheets", detail, {"sheets": self.hidden[:_NAMED_SHEETS]})


class _Tables:
    """Read the tables of a sheet one after the other, looking two rows ahead."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._ahead = next(rows, None)
        self._head: Mapping[int, str] = {}

    def lines(self) -> Iterator[tuple[int | None, str]]:
        """Yield each record with its row's number, and captions with none."""
        before: Row | None = None
        while row := self._take():
            if before is None or row.number > before.number + 1:
                while _is_caption(row, self._ahead):
                    yield None, _plain(row)
                    row = self._take() or row
                if self._begins_table(row, is_first=before is None or not self._head):
                    row = self._read_head(row) or row
            before = row
            yield row.number, self._record(self._without_names_beside(row))

    def _take(self) -> Row | None:
        row, self._ahead = self._ahead, next(self._rows, None)
        return row

    def _begins_table(self, row: Row, *, is_first: bool) -> bool:
        """Tell a head from a record: below an empty row only what is plainly another head begins a new table."""
        following = self._ahead
        if following is None or not _names_columns(row):
            return False
        if is_first and len(row.cells) > 1:
            return True
        has_values = any(not cell.is_text for column, cell in following.cells.items() if column in row.cells)
        is_elsewhere = len(row.cells) > 1 and not row.cells.keys() <= self._head.keys()
        return all(cell.is_text for cell in row.cells.values()) and (has_values or is_elsewhere)

    def _read_head(self, row: Row) -> Row | None:
        """Take the rows of the head and return the first record below."""
        names: dict[int, list[str]] = {}
        following: Row | None = None
        for _ in range(_MOST_HEAD_ROWS):
            for column, cell in row.cells.items():
                parts = names.setdefault(column, [])
                if cell.text not in parts:
                    parts.append(cell.text)
            following = self._take()
            if following is None or self._ahead is None or not _continues_head(row, following):
                break
            row = following
        self._head = _distinct({column: " ".join(names[column]) for column in sorted(names)})
        return following

    def _without_names_beside(self, row: Row) -> Row:
        """Learn the names of columns of a table that begins beside the present one, and return the row without them."""
        beside = {column: cell for column, cell in row.cells.items() if column not in self._head and cell.is_text}
        below = self._ahead.cells if self._ahead else {}
        has_values = any(column in below and not below[column].is_text for column in beside)
        if not self._head or len(beside) < 2 or len(beside) == len(row.cells) or not has_values:
            return row
        self._head = {**self._head, **_distinct({column: cell.text for column, cell in beside.items()})}
        return row._replace(cells={column: cell for column, cell in row.cells.items() if column not in beside})

    def _record(self, row: Row) -> str:
        if not self._head or _spans_table(row):
            return _plain(row)
        cells = row.cells.items()
        return "; ".join(
            f"{self._head.get(column) or 'column ' + letters(column)}: {cell.text}" for column, cell in cells
        )


def _plain(row: Row) -> str:
    return " | ".join(cell.text for cell in row.cells.values() if cell.filled is Filled.ITSELF)


def _own(row: Row) -> int:
    return sum(cell.filled is Filled.ITSELF for cell in row.cells.values())


def _spans_table(row: Row) -> bool:
    """Tell a label that is merged across the table from values."""
    return len(row.cells) > 1 and _own(row) == 1 and all(cell.filled is not Filled.ABOVE for cell in row.cells.values())


def _is_caption(row: Row, following: Row | None) -> bool:
    """Tell a title that stands alone above a table."""
    return following is not None and _own(row) == 1 and len(following.cells) > 1 and _says_text(row)


def _says_text(row: Row) -> bool:
    return all(cell.is_text for cell in row.cells.values())


def _names_columns(row: Row) -> bool:
    cells = row.cells.values()
    data = sum(not cell.is_text and not _YEAR.fullmatch(cell.text) for cell in cells)
    return data * 2 <= len(cells) and all(len(cell.text) <= _LONGEST_HEAD for cell in cells)


def _continues_head(row: Row, following: Row) -> bool:
    """Tell whether a head has another row: cells merged across columns have names below, or cells reach down."""
    is_split = any(cell.filled is Filled.LEFT for cell in row.cells.values())
    reaches_down = any(cell.filled is Filled.ABOVE for cell in following.cells.values())
    is_next = following.number == row.number + 1
    return is_next and (is_split or reaches_down) and _says_text(following) and _names_columns(following)


def _distinct(names: Mapping[int, str]) -> Mapping[int, str]:
    seen: Counter[str] = Counter()
    distinct = {}
    for column, name in names.items():
        seen[name] += 1
        distinct[column] = f"{name} ({seen[name]})" if seen[name] > 1 else name
    return distinct


def letters(column: int) -> str:
    """Return a column's name as programs show it: A, B, … Z, AA."""
    name = ""
    column += 1
    while column:
        column, place = divmod(column - 1, 26)
        name = chr(ord("A") + place) + name
    return name
