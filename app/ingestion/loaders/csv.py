"""CSV and TSV with any delimiter: one line for each record, `column: value; column: value`."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from app.domain import Extraction, Notice
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.text import read
from app.ingestion.port import Source

MEDIA_TYPES = ("text/csv", "text/tab-separated-values")

_DELIMITERS = (",", ";", "\t", "|", "^")
_NAMED_DELIMITER = re.compile(r"sep=(.)\r?\n")
_SAMPLE_CHARACTERS = 65_536
_SAMPLE_ROWS = 200
_LONGEST_CELL = 131_072
_NUMBER = re.compile(r"[-+]?[\d.,\s]*\d[\d.,]*\s*%?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*")
_YEAR = re.compile(r"(19|20)\d\d")
_LONGEST_HEAD = 120
_NAMED_LINES = 20
_SHARE_WITHOUT_HEAD = 0.8


def load(source: Source) -> Extraction:
    """Read records; a row that does not fit the head stays as it is written. Raises `EmptyDocument`."""
    decoded = read(source)
    text = decoded.text.replace("\0", "")
    dialect = _dialect(text, source.media_type)
    assembly = Assembly(source.limits.max_characters)
    assembly.removed = len(decoded.text) - len(text)
    rows = _rows(text, dialect)
    first, second = next(rows, _NO_ROW), next(rows, _NO_ROW)
    while _is_caption(first.cells, second.cells):
        assembly.add(on_one_line("".join(first.cells)))
        first, second = second, next(rows, _NO_ROW)
    head = _head(first.cells) if second.cells else []
    records: list[int] = []
    lines: list[int] = []
    ragged: list[int] = []
    for row in chain([second] if head else [found for found in (first, second) if found.cells], rows):
        records.append(assembly.add(_line(row.cells, head, dialect.delimiter), "\n"))
        lines.append(row.line)
        if head and _is_ragged(row.cells, head):
            ragged.append(row.line)
    return Extraction(
        text=assembly.text(),
        parser="csv",
        media_type=source.media_type,
        source_type="csv",
        encoding=decoded.encoding,
        warnings=(*assembly.notices(), *_ragged_rows(ragged, head)),
        details={"records": len(records), "columns": head, "delimiter": dialect.delimiter},
        records=tuple(records),
        record_numbers=tuple(lines),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    cells: list[str]
    line: int


_NO_ROW = _Row([], 0)


@dataclass(frozen=True, slots=True)
class _Dialect:
    delimiter: str
    quoting: Literal[0, 3]
    begin: int


def _dialect(text: str, media_type: str) -> _Dialect:
    """Find the delimiter under which most rows have the same number of cells, more than one."""
    named = _NAMED_DELIMITER.match(text)
    begin = named.end() if named else 0
    sample = text[begin : begin + _SAMPLE_CHARACTERS]
    if named:
        delimiter = named.group(1)
    else:
        candidates = ("\t", *_DELIMITERS) if media_type == "text/tab-separated-values" else _DELIMITERS
        delimiter = max(candidates, key=lambda candidate: _evenness(sample, candidate))
    return _Dialect(delimiter, _quoting(text[begin:], delimiter), begin)


def _lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline=None)


def _evenness(sample: str, delimiter: str) -> float:
    """Return the share of rows with the commonest number of cells, and a little for each cell; 0 for one column."""
    try:
        rows = [len(row) for row in islice(csv.reader(_lines(sample), delimiter=delimiter), _SAMPLE_ROWS)]
    except csv.Error:
        return 0.0
    # The sample may end inside a record.
    rows = [cells for cells in rows if cells][: -1 if len(rows) > 2 else None]
    if not rows:
        return 0.0
    cells, count = Counter(rows).most_common(1)[0]
    # Commas in decimal numbers are as even as any delimiter, but not in the head.
    fits_head = 1.0 if rows[0] == cells else _SHARE_WITHOUT_HEAD
    return fits_head * count / len(rows) + min(cells, 20) / 100 if cells > 1 else 0.0


def _quoting(text: str, delimiter: str) -> Literal[0, 3]:
    """Ignore quotation marks where one that is never closed would swallow the rest of the file."""
    csv.field_size_limit(_LONGEST_CELL)
    try:
        for row in csv.reader(_lines(text), delimiter=delimiter):
            if any(cell.count("\n") > 200 for cell in row):
                return csv.QUOTE_NONE
    except csv.Error:
        return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL


def _rows(text: str, dialect: _Dialect) -> Iterator[_Row]:
    """Yield the rows that are not empty, each with the number of the line that it begins on."""
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(_lines(text[dialect.begin :]), delimiter=dialect.delimiter, quoting=dialect.quoting)
    line = text.count("\n", 0, dialect.begin) + 1
    skipped = line - 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _Row(cells, line)
            line = skipped + reader.line_num + 1
    except csv.Error as error:
        raise DamagedDocument(f"the records cannot be read at line {line}: {error}") from error


def _is_ragged(cells: list[str], head: list[str]) -> bool:
    """Return whether a row has fewer cells than the head, or a filled one beyond it."""
    return len(cells) < len(head) or any(cell.strip() for cell in cells[len(head) :])


def _ragged_rows(lines: list[int], head: list[str]) -> tuple[Notice, ...]:
    if not lines:
        return ()
    detail = f"{len(lines)} rows do not have the {len(head)} cells of the head, the first of them in line {lines[0]}"
    return (Notice("ragged_rows", detail, {"count": len(lines), "lines": lines[:_NAMED_LINES]}),)


def _is_caption(row: list[str], following: list[str]) -> bool:
    """Tell a title that stands alone above the head from a row of a one-column file."""
    return sum(bool(cell.strip()) for cell in row) == 1 and sum(bool(cell.strip()) for cell in following) > 1


def _head(first: list[str]) -> list[str]:
    """Return the columns' names, each once, or nothing where the first row looks like data."""
    cells = [on_one_line(cell) for cell in first]
    while cells and not cells[-1]:
        cells.pop()
    data = sum(bool(_NUMBER.fullmatch(cell)) and not _YEAR.fullmatch(cell) for cell in cells)
    if not cells or data * 2 > len(cells) or any(len(cell) > _LONGEST_HEAD for cell in cells):
        return []
    seen: Counter[str] = Counter()
    names = []
    for place, cell in enumerate(cells, 1):
        name = cell or f"column {place}"
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


def _line(row: list[str], head: list[str], delimiter: str) -> str:
    if not head or any(cell.strip() for cell in row[len(head) :]):
        return delimiter.join(on_one_line(cell) for cell in row)
    cells = ((name, on_one_line(cell)) for name, cell in zip(head, row, strict=False))
    return "; ".join(f"{name}: {cell}" for name, cell in cells if cell)
