"""Read an OpenDocument spreadsheet: rows and cells that are said once for many, values by their type."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from app.domain import Extraction
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.odf_content import OFFICE, PARAGRAPHS, TABLE, Content, Inline, count
from app.ingestion.loaders.odf_text import cells_of, rows_of
from app.ingestion.loaders.sheets import Cell, Filled, Row, Sheets
from app.ingestion.loaders.xlsx_values import Shown, number
from app.ingestion.port import Source

_WIDEST = 16_384
_WIDEST_MERGE = 256
_MIDNIGHT = "T00:00:00"


def read_spreadsheet(content: Content, source: Source) -> Extraction:
    """Return a line for each row of the visible sheets; raises `DocumentLimitExceeded` and `EmptyDocument`."""
    sheets = Sheets(Assembly(source.limits.max_characters))
    for table in content.body.iterchildren(TABLE + "table"):
        name = table.get(TABLE + "name", "")
        style = table.get(TABLE + "style-name")
        if content.style_says(style, "table", "table-properties", TABLE + "display") == "false":
            sheets.hidden.append(name)
        else:
            sheets.write(name, _rows(table))
    return sheets.extraction(source, "ods", content.title)


@dataclass(slots=True)
class _Spans:
    """Cells that reach down: by column, the last row that they cover and what they say."""

    open: dict[int, tuple[int, Cell]] = field(default_factory=dict)

    def above(self, row: int, column: int) -> Cell | None:
        last, cell = self.open.get(column, (0, None))
        return cell if last >= row else None


def _rows(table: etree._Element) -> Iterator[Row]:
    spans = _Spans()
    last = 0
    for element in rows_of(table):
        times = count(element.get(TABLE + "number-rows-repeated"), 1)
        cells = _cells(element, last + 1, spans)
        # Below the last row stand a million empty ones, said once.
        for repetition in range(times if cells else 0):
            yield Row(last + 1 + repetition, cells)
        last += times


def _cells(row: etree._Element, row_number: int, spans: _Spans) -> dict[int, Cell]:
    cells: dict[int, Cell] = {}
    column = 0
    for element in cells_of(row):
        times = count(element.get(TABLE + "number-columns-repeated"), 1, _WIDEST)
        cell = _cell(element)
        if cell is not None:
            width = count(element.get(TABLE + "number-columns-spanned"), 1, _WIDEST_MERGE)
            last = row_number + count(element.get(TABLE + "number-rows-spanned"), 1) - 1
            for place in range(column, min(column + max(times, width), _WIDEST)):
                cells[place] = cell if place < column + times else cell._replace(filled=Filled.LEFT)
                spans.open[place] = (last, cell._replace(filled=Filled.ABOVE))
        elif element.tag == TABLE + "covered-table-cell":
            for place in range(column, min(column + times, column + _WIDEST_MERGE)):
                covering = cells.get(place) or spans.above(row_number, place)
                if covering is not None:
                    cells[place] = covering
        column += times
    return cells


def _cell(cell: etree._Element) -> Cell | None:
    kind = cell.get(OFFICE + "value-type")
    value = cell.get(OFFICE + "value", "")
    if kind in ("float", "currency") and value:
        return Cell(number(value, Shown.NUMBER, from_1904=False), is_text=False)
    if kind == "percentage" and value:
        return Cell(number(value, Shown.PERCENT, from_1904=False), is_text=False)
    if kind == "date" and cell.get(OFFICE + "date-value"):
        return Cell(cell.get(OFFICE + "date-value", "").removesuffix(_MIDNIGHT).replace("T", " "), is_text=False)
    if kind == "boolean" and cell.get(OFFICE + "boolean-value"):
        return Cell(cell.get(OFFICE + "boolean-value", ""), is_text=False)
    inline = Inline(lambda _: "")
    text = on_one_line(" ".join(inline.text(paragraph) for paragraph in cell.iterchildren(*PARAGRAPHS)))
    return Cell(text, is_text=kind != "time") if text else None
