"""Text of DrawingML, which slides are made of: paragraphs, tables, charts and diagrams."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from lxml import etree

from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.office_package import MC

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"

_DEEPEST_LIST = 8
_WIDEST_TABLE = 1_000
_MAX_SERIES = 200
_MAX_POINTS = 2_000


def lines(body: etree._Element) -> Iterator[str]:
    """Yield the paragraphs of a text body that say something, with bullets and numbers as the slide shows them."""
    numbers: dict[int, int] = {}
    for paragraph in body.iterchildren(A + "p"):
        text = paragraph_text(paragraph)
        if not text.strip():
            continue
        properties = paragraph.find(A + "pPr")
        level = _level(properties)
        mark = _mark(properties, level, numbers)
        yield "  " * level + mark + text.strip()


def paragraph_text(paragraph: etree._Element) -> str:
    """Return a paragraph's text without the slide's number and other fields of the page."""
    return "".join(_inline(paragraph))


def _inline(paragraph: etree._Element) -> Iterator[str]:
    for child in paragraph.iterchildren(etree.Element):
        if child.tag == A + "br":
            yield "\n"
        elif child.tag == A + "r" or (child.tag == A + "fld" and child.get("type") != "slidenum"):
            yield child.findtext(A + "t") or ""
        elif child.tag == MC + "AlternateContent":
            # Of two renditions of a formula the first is the formula.
            for rendition in islice(child.iterchildren(MC + "Choice"), 1):
                yield "".join(found.text or "" for found in rendition.iter(_MATH_TEXT, A + "t"))


def _level(properties: etree._Element | None) -> int:
    level = "0" if properties is None else properties.get("lvl", "0")
    return min(int(level), _DEEPEST_LIST) if level.isdecimal() and len(level) < 3 else 0


def _mark(properties: etree._Element | None, level: int, numbers: dict[int, int]) -> str:
    for deeper in [found for found in numbers if found > level]:
        del numbers[deeper]
    if properties is not None and properties.find(A + "buAutoNum") is not None:
        start = properties.find(A + "buAutoNum").get("startAt", "1")
        numbers[level] = numbers.get(level, int(start) - 1 if start.isdecimal() and len(start) < 6 else 0) + 1
        return f"{numbers[level]}. "
    numbers.pop(level, None)
    if properties is not None and properties.find(A + "buNone") is not None:
        return ""
    return "- " if level or (properties is not None and properties.find(A + "buChar") is not None) else ""


def table_lines(table: etree._Element) -> Iterator[str]:
    """Yield a table's rows; a merged cell's text stands in each row and column that it covers."""
    above: list[str] = []
    for row in table.iterchildren(A + "tr"):
        cells: list[str] = []
        for place, cell in enumerate(islice(row.iterchildren(A + "tc"), _WIDEST_TABLE)):
            if cell.get("vMerge") in ("1", "true") and place < len(above):
                cells.append(above[place])
            elif cell.get("hMerge") in ("1", "true") and cells:
                cells.append(cells[-1])
            else:
                cells.append(on_one_line(" ".join(paragraph_text(each) for each in cell.iter(A + "p"))))
        if any(cells):
            yield " | ".join(cells)
        above = cells


def chart_lines(chart: etree._Element) -> Iterator[str]:
    """Yield a chart's titles, then its data as the rows of a table, one column for each series."""
    for title in chart.iter(C + "title"):
        text = on_one_line(" ".join(paragraph_text(each) for each in title.iter(A + "p")))
        if text:
            yield text
    series = list(islice(chart.iter(C + "ser"), _MAX_SERIES))
    if not series:
        return
    names = [on_one_line(" ".join(_points(each.find(C + "tx")))) for each in series]
    categories = _longest(_points(_first(each, C + "cat", C + "xVal")) for each in series)
    values = [_points(_first(each, C + "val", C + "yVal")) for each in series]
    if any(names):
        yield " | ".join(["", *names]).strip()
    for row in zip_longest(categories, *values, fillvalue=""):
        yield " | ".join(row)


def _first(element: etree._Element, *names: str) -> etree._Element | None:
    return next((found for name in names if (found := element.find(name)) is not None), None)


def _longest(columns: Iterable[Sequence[str]]) -> Sequence[str]:
    return max(columns, key=len)


def _points(values: etree._Element | None) -> list[str]:
    """Return the cached values that a chart shows."""
    found = () if values is None else islice(values.iter(C + "v"), _MAX_POINTS)
    return [on_one_line(value.text or "") for value in found]


def diagram_lines(diagram: etree._Element) -> Iterator[str]:
    """Yield the texts of a SmartArt diagram in the order in which they were written."""
    for point in diagram.iter(_DIAGRAM + "pt"):
        text = on_one_line(" ".join(paragraph_text(each) for each in point.iter(A + "p")))
        if text:
            yield text
