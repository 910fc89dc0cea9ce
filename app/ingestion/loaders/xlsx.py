"""XLSX: each visible sheet under its name, a line for each row, `column: value; column: value`."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from app.domain import Extraction, Notice
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.loaders.drawing import lines
from app.ingestion.loaders.office_package import Package, R, open_package
from app.ingestion.loaders.sheets import Sheets
from app.ingestion.loaders.xlsx_rows import Workbook, Worksheet, shared_strings
from app.ingestion.loaders.xlsx_values import shown_by_style
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",)

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_TEXT_BODY = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}txBody"
_TRUE = ("1", "true")


def load(source: Source) -> Extraction:
    """Read a workbook as it was last saved: formulas by their cached values, hidden sheets not at all.

    Raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded` and `EmptyDocument`.
    """
    with open_package(source) as package:
        main = package.main_part("xl/workbook.xml")
        tabs, workbook = _read_workbook(package, main)
        hidden = [tab.name for tab in tabs if tab.is_hidden]
        sheets = Sheets(Assembly(source.limits.max_characters), hidden)
        without_value = 0
        for tab in (tab for tab in tabs if not tab.is_hidden):
            worksheet = Worksheet(package.archive, tab.part, workbook)
            with closing(worksheet.rows()) as rows:
                sheets.write(tab.name, rows, list(_text_boxes(package, tab.part)))
            without_value += worksheet.formulas_without_value
        extraction = sheets.extraction(source, "xlsx", package.title())
        return replace(extraction, warnings=(*extraction.warnings, *_notices(without_value)))


@dataclass(frozen=True, slots=True)
class _Tab:
    name: str
    part: str
    is_hidden: bool


def _read_workbook(package: Package, main: str) -> tuple[list[_Tab], Workbook]:
    """Return the sheets of cells in their order, and what their cells refer to."""
    root = package.tree(main)
    if root is None or root.tag != f"{_MAIN}workbook":
        raise DamagedDocument("the container holds no workbook")
    relations = package.relations(main)
    tabs = [
        _Tab(tab.get("name", ""), relation.target, is_hidden=tab.get("state", "visible") != "visible")
        for tab in root.iterfind(f"{_MAIN}sheets/{_MAIN}sheet")
        if (relation := relations.get(tab.get(R + "id", ""))) and relation.kind == "worksheet"
    ]
    parts = {relation.kind: relation.target for relation in relations.values()}
    properties = root.find(f"{_MAIN}workbookPr")
    return tabs, Workbook(
        strings=shared_strings(package.archive, parts.get("sharedStrings", "")),
        shown=shown_by_style(package.tree(parts.get("styles", ""))),
        from_1904=properties is not None and properties.get("date1904") in _TRUE,
    )


def _text_boxes(package: Package, part: str) -> Iterator[str]:
    for relation in package.relations(part).values():
        root = package.tree(relation.target) if relation.kind == "drawing" else None
        for body in root.iter(_TEXT_BODY) if root is not None else ():
            text = "\n".join(lines(body))
            if text:
                yield text


def _notices(without_value: int) -> Iterator[Notice]:
    if without_value:
        detail = f"{without_value} formulas have no stored value; open and save the workbook in its program"
        yield Notice("formulas_without_value", detail, {"count": without_value})
