import io
import zipfile
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument
from app.ingestion.loaders.sheets import Cell
from app.ingestion.loaders.xlsx_rows import Merge, _Merges
from app.ingestion.loaders.xlsx_values import Shown, number, shown_by_code

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DATE, PERCENT, ISO_DATE, MOMENT, DURATION = 1, 2, 3, 4, 5
STYLES = (
    f'<styleSheet {MAIN}><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd;@"/></numFmts><cellXfs>'
    + "".join(f'<xf numFmtId="{id_}"/>' for id_ in (0, 14, 10, 164, 22, 46))
    + "</cellXfs></styleSheet>"
)


def relationships(*relations: tuple[str, str, str]) -> str:
    links = "".join(f'<Relationship Id="{id_}" Type="{KINDS}/{kind}" Target="{to}"/>' for id_, kind, to in relations)
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{links}</Relationships>'
    )


def cell(value: object) -> str:
    """Write a value, or a value and its style; `None` is a cell with a style and nothing in it."""
    value, style = value if isinstance(value, tuple) else (value, 0)
    if value is None:
        return f'<c s="{style}"/>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return value if value.startswith("<c") else f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c s="{style}"><v>{value}</v></c>'


def row(*values: object, number: int | None = None) -> str:
    attribute = f' r="{number}"' if number else ""
    return f"<row{attribute}>{''.join(map(cell, values))}</row>"


def sheet(*rows: str, merged: tuple[str, ...] = ()) -> str:
    ranges = "".join(f'<mergeCell ref="{each}"/>' for each in merged)
    merges = f'<mergeCells count="{len(merged)}">{ranges}</mergeCells>' if merged else ""
    return f"<worksheet {MAIN}><sheetData>{''.join(rows)}</sheetData>{merges}</worksheet>"


def workbook(
    sheets: dict[str, str],
    *,
    hidden: tuple[str, ...] = (),
    strings: tuple[str, ...] = (),
    properties: str = "",
    **parts: str,
) -> bytes:
    """Pack sheets by name; further parts are related to the first sheet by their name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", relationships(("main", "officeDocument", "xl/workbook.xml")))
        tabs = "".join(
            f'<sheet name="{name}" state="{"hidden" if name in hidden else "visible"}" r:id="s{place}"/>'
            for place, name in enumerate(sheets)
        )
        archive.writestr(
            "xl/workbook.xml", f'<workbook {MAIN} xmlns:r="{KINDS}">{properties}<sheets>{tabs}</sheets></workbook>'
        )
        links = [(f"s{place}", "worksheet", f"worksheets/sheet{place}.xml") for place in range(len(sheets))]
        others = [("strings", "sharedStrings", "sharedStrings.xml"), ("styles", "styles", "styles.xml")]
        archive.writestr("xl/_rels/workbook.xml.rels", relationships(*links, *others))
        archive.writestr("xl/styles.xml", STYLES)
        archive.writestr("xl/sharedStrings.xml", f"<sst {MAIN}>{''.join(strings)}</sst>")
        for place, inside in enumerate(sheets.values()):
            archive.writestr(f"xl/worksheets/sheet{place}.xml", inside)
        archive.writestr(
            "xl/worksheets/_rels/sheet0.xml.rels", relationships(*[(name, name, f"../{name}.xml") for name in parts])
        )
        for name, inside in parts.items():
            archive.writestr(f"xl/{name}.xml", inside)
    return packed.getvalue()


@pytest.fixture
def lines(load) -> Callable[..., list[str]]:
    """Return a function that loads a sheet of rows and returns its lines without the sheet's name."""

    def run(*rows: str, merged: tuple[str, ...] = (), **more: object) -> list[str]:
        text = load(workbook({"Data": sheet(*rows, merged=merged)}, **more), "a.xlsx").text
        title, _, body = text.partition("\n\n")
        assert title == "Data"
        return body.split("\n")

    return run


def test_each_row_repeats_the_head_and_dates_are_dates(lines) -> None:
    rows = [row("date", "amount"), *(row((45287, DATE), 27) for _ in range(500))]

    assert lines(*rows) == ["date: 2023-12-27; amount: 27"] * 500


def test_sheets_are_sections_in_their_order_and_records_know_their_rows(load) -> None:
    sheets = {"One": sheet(row("name"), row(1), row(2)), "Two & more": sheet(row("a", "b"), row(1, 2))}

    found = load(workbook({name.replace("&", "&amp;"): inside for name, inside in sheets.items()}), "a.xlsx")

    assert [(heading.level, heading.title) for heading in found.headings] == [(1, "One"), (1, "Two & more")]
    assert all(found.text.startswith(heading.title, heading.start) for heading in found.headings)
    assert [found.text[start:].partition("\n")[0] for start in found.records] == ["name: 1", "name: 2", "a: 1; b: 2"]
    assert found.record_numbers == (2, 3, 2)
    assert found.details == {"records": 3, "sheets": ["One", "Two & more"]}


def test_hidden_sheets_are_left_out_and_told(load) -> None:
    found = load(workbook({"Seen": sheet(row("x")), "Unseen": sheet(row("secret"))}, hidden=("Unseen",)), "a.xlsx")

    assert found.text == "Seen\n\nx"
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("hidden_sheets", {"sheets": ["Unseen"]})]


def test_values_are_written_as_they_are_shown(lines) -> None:
    shown = lines(
        row("what", "value"),
        row("truth", True),
        row("share", (0.256, PERCENT)),
        row("day", (45287, ISO_DATE)),
        row("moment", (45287.75, MOMENT)),
        row("duration", (1.5, DURATION)),
        row("sum", 0.1 + 0.2),
        row("whole", "<c><v>27.0</v></c>"),
        row("large", "<c><v>1.5E+6</v></c>"),
        row("formula", "<c><f>A1+1</f><v>42</v></c>"),
        row("words", '<c t="str"><f>A1</f><v>said</v></c>'),
        row("error", '<c t="e"><v>#DIV/0!</v></c>'),
        row("stored date", '<c t="d"><v>2024-02-29T00:00:00</v></c>'),
    )

    assert [line.removeprefix("what: ").replace("; value:", "") for line in shown] == [
        "truth true",
        "share 25.6%",
        "day 2023-12-27",
        "moment 2023-12-27 18:00:00",
        "duration 36:00:00",
        "sum 0.3",
        "whole 27",
        "large 1500000",
        "formula 42",
        "words said",
        "error #DIV/0!",
        "stored date 2024-02-29",
    ]


def test_the_calendar_from_1904_is_known(lines) -> None:
    properties = '<workbookPr date1904="1"/>'

    assert lines(row("day", "n"), row((43825, DATE), 1), properties=properties) == ["day: 2023-12-27; n: 1"]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("General", Shown.NUMBER),
        ("#,##0.00", Shown.NUMBER),
        ("0.00E+00", Shown.NUMBER),
        ('0" days"', Shown.NUMBER),
        ("[Red]0", Shown.NUMBER),
        ("0.0%", Shown.PERCENT),
        ("dd.mm.yyyy", Shown.DATE),
        ("mmm", Shown.DATE),
        ("[$-409]d-mmm-yy;@", Shown.DATE),
        ('yyyy"年"m"月"d"日"', Shown.DATE),
        ("m/d/yy h:mm", Shown.MOMENT),
        ("h:mm AM/PM", Shown.TIME),
        ("mm:ss", Shown.TIME),
        ("[h]:mm", Shown.DURATION),
    ],
)
def test_a_format_tells_what_a_number_is_shown_as(code: str, shown: Shown) -> None:
    assert shown_by_code(code) is shown


@pytest.mark.parametrize(
    ("raw", "shown", "text"),
    [
        ("1", Shown.DATE, "1900-01-01"),
        ("61", Shown.DATE, "1900-03-01"),
        ("-5", Shown.DATE, "-5"),
        ("1e300", Shown.DATE, "1e+300"),
        ("nan", Shown.DATE, "nan"),
        ("inf", Shown.NUMBER, "inf"),
        ("2958465.9999999", Shown.MOMENT, "2958465.9999999"),
        ("0.5", Shown.TIME, "12:00:00"),
        ("45287.0", Shown.MOMENT, "2023-12-27"),
        ("-0.25", Shown.DURATION, "-6:00:00"),
        ("none", Shown.NUMBER, "none"),
        ("12345678901234567890", Shown.NUMBER, "1.23456789012346e+19"),
    ],
)
def test_numbers_at_the_edges_are_written(raw: str, shown: Shown, text: str) -> None:
    assert number(raw, shown, from_1904=False) == text


def test_shared_strings_lose_readings_and_join_their_runs(lines) -> None:
    strings = (
        "<si><r><t>Tok</t></r><r><t>yo</t></r></si>",
        "<si><t>東京</t><rPh><t>トウキョウ</t></rPh></si>",
        "<si><t>two\nlines</t></si>",
    )
    cells = ["", *(f'<c t="s"><v>{place}</v></c>' for place in ("0", "1", "2", "9", "x"))]

    assert lines(row(*cells), strings=strings) == ["Tokyo | 東京 | two lines"]


def test_merged_cells_are_filled_down_and_across(lines) -> None:
    rows = [row("team", "year", "sum"), row("red", 2025, 1), row(None, 2026, 2), row("blue", "none", None)]

    assert lines(*rows, merged=("A2:A3", "B4:C4")) == [
        "team: red; year: 2025; sum: 1",
        "team: red; year: 2026; sum: 2",
        "team: blue; year: none; sum: none",
    ]


def test_merges_that_overlap_cost_no_more_than_their_columns() -> None:
    merges = _Merges([Merge(row, 10_000, 0, 1) for row in range(1, 2001)])
    for place in range(1, 2001):
        filled = merges.fill(place, {0: Cell(str(place), is_text=False)})
        assert filled[1].text == str(max(1, place - 1))
    assert len(merges._open) == 2


def test_a_label_that_is_merged_across_the_table_is_a_line(lines) -> None:
    rows = [row("name", "sum"), row("North", None), row("Oulu", 1)]

    assert lines(*rows, merged=("A2:B2",)) == ["North", "name: Oulu; sum: 1"]


def test_a_head_of_two_rows_names_each_column_by_both(lines) -> None:
    rows = [row("city", "2026", None), row(None, "Q1", "Q2"), row("Oulu", 1, 2)]

    assert lines(*rows, merged=("A1:A2", "B1:C1")) == ["city: Oulu; 2026 Q1: 1; 2026 Q2: 2"]


def test_a_title_above_the_head_stays_a_line(lines) -> None:
    rows = [row("Reading list", None), row("title", "year"), row("Emma", 1815)]

    assert lines(*rows, merged=("A1:B1",)) == ["Reading list", "title: Emma; year: 1815"]


def test_empty_rows_and_columns_are_dropped_and_the_head_holds_below_them(lines) -> None:
    rows = [
        row("", "name", "", "city"),
        row("", "Aino", "", "Oulu"),
        row(),
        row(None),
        row("", " ", "", "Turku"),
        row("", "Eero", "", ""),
    ]

    assert lines(*rows) == ["name: Aino; city: Oulu", "city: Turku", "name: Eero"]


def test_a_second_table_below_an_empty_row_has_its_own_head(lines) -> None:
    rows = [row("a", "b"), row(1, 2), row(), row("c", "d"), row(3, 4), row(5, 6)]

    assert lines(*rows) == ["a: 1; b: 2", "c: 3; d: 4", "c: 5; d: 6"]


def test_a_table_that_begins_beside_another_has_its_own_names(lines) -> None:
    rows = [row("a", "b"), row(1, 2), row(3, 4, "", "c", "d"), row(5, 6, "", 7, 8)]

    assert lines(*rows) == ["a: 1; b: 2", "a: 3; b: 4", "a: 5; b: 6; c: 7; d: 8"]


def test_rows_without_a_head_are_told_cell_by_cell(lines) -> None:
    assert lines(row(1, 2), row(3, 4)) == ["1 | 2", "3 | 4"]
    assert lines(row("one note"), row("another note")) == ["one note", "another note"]


def test_names_that_come_twice_are_told_apart_and_nameless_columns_by_their_letters(lines) -> None:
    assert lines(row("x", "x", ""), row(1, 2, 3)) == ["x: 1; x (2): 2; column C: 3"]


def test_cells_stand_where_they_say(lines) -> None:
    head = '<c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="AB1" t="inlineStr"><is><t>b</t></is></c>'

    assert lines(f'<row r="1">{head}</row>', '<row r="2"><c r="AB2"><v>7</v></c></row>') == ["b: 7"]


@pytest.mark.parametrize("reference", ["NaN", "1e400", "-5", "²", "ABCD1", "", "a1"])
def test_a_cell_that_does_not_say_where_it_stands_follows_the_one_before(lines, reference: str) -> None:
    rows = [row("a", "b", "c"), f'<row>{cell(1)}<c r="{reference}"><v>2</v></c>{cell(3)}</row>']

    assert lines(*rows) == ["a: 1; b: 2; c: 3"]


def test_formulas_without_a_stored_value_are_told(load) -> None:
    data = workbook(
        {
            "Data": sheet(
                row("a", "b"),
                row(1, "<c><f>A2*2</f></c>"),
                row(2, "<c><f>A3</f><v/></c>"),
                row('<c t="str"><f>A4</f><v/></c>'),
            )
        }
    )

    found = load(data, "a.xlsx")

    assert found.text == "Data\n\na: 1\na: 2"
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("formulas_without_value", {"count": 2})]


def test_text_boxes_are_read_after_the_cells(load) -> None:
    drawing = (
        '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        "<xdr:sp><xdr:txBody><a:p><a:r><a:t>remark</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:wsDr>"
    )

    assert load(workbook({"Data": sheet(row("x"))}, drawing=drawing), "a.xlsx").text == "Data\n\nx\n\nremark"
    assert load(workbook({"Data": sheet()}, drawing=drawing), "a.xlsx").text == "Data\n\nremark"


def test_a_cell_far_away_costs_nothing(lines) -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'

    assert lines(row(1, number=1), far) == ["1", "2"]


@pytest.mark.parametrize("sheets", [{"Data": sheet(row(None))}, {"Data": sheet()}, {}])
def test_a_workbook_that_says_nothing_is_empty(load, sheets: dict[str, str]) -> None:
    with pytest.raises(EmptyDocument):
        load(workbook(sheets), "a.xlsx")


def test_a_workbook_of_hidden_sheets_says_why_it_is_empty(load) -> None:
    with pytest.raises(EmptyDocument, match="hidden"):
        load(workbook({"Data": sheet(row("x"))}, hidden=("Data",)), "a.xlsx")


def test_a_sheet_that_is_cut_off_inside_is_damaged(load) -> None:
    with pytest.raises(DamagedDocument, match="XML"):
        load(workbook({"Data": sheet(row("x"))[:-20]}), "a.xlsx")


def test_what_is_no_workbook_inside_is_damaged(load) -> None:
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("xl/workbook.xml", "<other/>")

    with pytest.raises(DamagedDocument, match="no workbook"):
        load(packed.getvalue(), "a.xlsx")


def test_a_giant_sheet_is_over_the_limit_that_is_named(load) -> None:
    data = workbook({"Data": sheet(row("head", "b"), *[row("word " * 20, 1)] * 2000)})

    with pytest.raises(DocumentLimitExceeded) as caught:
        load(data, "a.xlsx", limits={"max_characters": 50_000})
    assert "FOOTNOTE_MAX_CHARACTERS" in (caught.value.hint or "")


def test_a_sheet_that_unpacks_to_a_bomb_is_over_the_limit(load) -> None:
    data = workbook({"Data": sheet("<row/>" * 2_000_000)})

    assert len(data) < 100_000
    with pytest.raises(DocumentLimitExceeded) as caught:
        load(data, "a.xlsx", limits={"parse_memory_bytes": 10_000_000})
    assert "FOOTNOTE_PARSE_MEMORY_BYTES" in (caught.value.hint or "")


def test_entities_that_multiply_are_over_the_limit(load) -> None:
    entities = "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE a [<!ENTITY x0 "lol lol lol">{entities}]>' + sheet(
        '<row x="&x9;"><c t="str"><v>&x9;</v></c></row>'
    )

    with pytest.raises(DocumentLimitExceeded):
        load(workbook({"Data": bomb}), "a.xlsx")
