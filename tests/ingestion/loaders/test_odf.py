import io
import zipfile
from collections.abc import Callable

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument, NoExtractableText, PasswordRequired

KINDS = "application/vnd.oasis.opendocument."
SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "style": "style",
        "svg": "svg-compatible",
        "presentation": "presentation",
        "manifest": "manifest",
    }.items()
)


def packed(body: str, kind: str = "text", styles: str = "", **parts: str) -> bytes:
    """Pack a body with its automatic styles; further parts are `styles_xml`, `meta_xml` and `manifest`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", KINDS + kind)
        archive.writestr(
            "content.xml",
            f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        )
        names = {"styles_xml": "styles.xml", "meta_xml": "meta.xml", "manifest": "META-INF/manifest.xml"}
        for part, inside in parts.items():
            archive.writestr(names[part], f"<office:x {SPACES}>{inside}</office:x>")
    return file.getvalue()


def p(text: str) -> str:
    return f"<text:p>{text}</text:p>"


@pytest.fixture
def text_of(load) -> Callable[..., str]:
    return lambda body, **more: load(packed(body, **more), "a.odt").text


def test_headings_have_their_level_and_place(load) -> None:
    body = '<text:h text:outline-level="2">Deep</text:h>' + p("x") + '<text:h text:outline-level="9">Deeper</text:h>'

    found = load(packed(body), "a.odt")

    assert found.text == "Deep\n\nx\n\nDeeper"
    assert [(heading.level, heading.title, heading.start) for heading in found.headings] == [
        (2, "Deep", 0),
        (6, "Deeper", 9),
    ]


def test_spaces_tabs_and_breaks_are_those_of_the_reader(text_of) -> None:
    assert text_of(p('a\n   b<text:s text:c="3"/>c<text:tab/>d<text:line-break/>e<text:span>f</text:span>g')) == (
        "a b   c\td\nefg"
    )


def test_lists_are_marked_numbered_and_continued(text_of) -> None:
    styles = (
        '<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1"/>'
        '<text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    inner = f"<text:list><text:list-item>{p('b')}{p('more of b')}</text:list-item></text:list>"
    first = f'<text:list text:style-name="N"><text:list-item>{p("a")}{inner}</text:list-item></text:list>'
    second = (
        f'<text:list text:style-name="N" text:continue-numbering="true"><text:list-item>{p("c")}</text:list-item>'
        f'<text:list-item text:start-value="7">{p("d")}</text:list-item></text:list>'
    )

    assert text_of(p("see") + first + second, styles=styles) == ("see\n\n1. a\n  - b\n    more of b\n2. c\n7. d")


def test_tables_read_row_by_row_and_a_frame_around_text_as_that_text(text_of) -> None:
    def table(*rows: tuple[str, ...]) -> str:
        written = (
            "<table:table-row>"
            + "".join(f"<table:table-cell>{p(cell)}</table:table-cell>" for cell in row)
            + "</table:table-row>"
            for row in rows
        )
        head = f"<table:table-header-rows>{next(written)}</table:table-header-rows>"
        return f"<table:table>{head}{''.join(written)}</table:table>"

    assert text_of(table(("a", "b"), ("1", "2")) + table(("framed",))) == "a | b\n1 | 2\n\nframed"


def test_notes_stand_at_the_end_with_their_marks_and_comments_are_out(text_of) -> None:
    note_body = f"<text:note-body>{p('noted')}</text:note-body>"
    note = f"<text:note><text:note-citation>1</text:note-citation>{note_body}</text:note>"
    comment = f"<office:annotation>{p('internal')}</office:annotation>"

    assert text_of(p(f"claim{note}{comment} goes on")) == "claim[1] goes on\n\n[1] noted"


def test_deleted_text_and_the_table_of_contents_are_out(text_of) -> None:
    deleted = f"<text:tracked-changes><text:changed-region>{p('gone')}</text:changed-region></text:tracked-changes>"
    contents = f"<text:table-of-content><text:index-body>{p('Chapter 1')}</text:index-body></text:table-of-content>"

    assert text_of(deleted + contents + p("kept")) == "kept"


def test_text_boxes_follow_their_paragraph(text_of) -> None:
    box = f"<draw:frame><draw:text-box>{p('boxed')}</draw:text-box></draw:frame>"

    assert text_of(p(f"before{box} after") + p("last")) == "before after\n\nboxed\n\nlast"


def test_headers_and_footers_come_once_around_the_text(text_of) -> None:
    page = "<style:master-page><style:header>{}</style:header><style:footer>{}</style:footer></style:master-page>"
    number = "Page <text:page-number>7</text:page-number> of <text:page-count>9</text:page-count>"
    hidden = f'<style:master-page><style:header style:display="false">{p("unused")}</style:header></style:master-page>'
    styles = page.format(p("DRAFT"), p(number)) + page.format(p("DRAFT"), p("foot")) + hidden

    assert text_of(p("text"), styles_xml=styles) == "DRAFT\n\ntext\n\nfoot"


def test_the_title_is_that_of_the_properties_or_of_its_style(load) -> None:
    titled = '<text:p text:style-name="P1">Styled</text:p>'
    styles = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    meta = '<dc:title xmlns:dc="http://purl.org/dc/elements/1.1/">Told</dc:title>'

    assert load(packed(titled, styles=styles), "a.odt").title == "Styled"
    assert load(packed(titled, styles=styles, meta_xml=meta), "a.odt").title == "Told"


def cell(value: object, attributes: str = "") -> str:
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value}" {attributes}/>'
    return f'<table:table-cell office:value-type="string" {attributes}>{p(str(value))}</table:table-cell>'


def row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def test_a_spreadsheet_repeats_its_head_with_each_row(load) -> None:
    def typed(kind: str, value: str, shown: str) -> str:
        attribute = {"percentage": "value"}.get(kind, f"{kind}-value")
        return (
            f'<table:table-cell office:value-type="{kind}" office:{attribute}="{value}">{p(shown)}</table:table-cell>'
        )

    date, share, truth = (
        typed("date", "2023-12-27", "27.12.23"),
        typed("percentage", "0.25", "25 %"),
        typed("boolean", "true", "WAHR"),
    )
    rows = row(cell("date"), cell("amount"), cell("share"), cell("paid")) + row(date, cell(27), share, truth)
    empty = row("<table:table-cell/>", attributes='table:number-rows-repeated="1048570"')

    found = load(packed(f'<table:table table:name="Data">{rows}{empty}</table:table>', "spreadsheet"), "a.ods")

    assert found.text == "Data\n\ndate: 2023-12-27; amount: 27; share: 25%; paid: true"
    assert (found.source_type, found.record_numbers) == ("ods", (2,))


def test_cells_said_once_for_many_and_merged_cells_are_filled(load) -> None:
    head = row(cell("team"), cell("a"), cell("b"), cell("c"))
    first = row(cell("red", 'table:number-rows-spanned="2"'), cell(1, 'table:number-columns-repeated="3"'))
    second = row(
        "<table:covered-table-cell/>", cell(2, 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>"
    )
    third = row(cell("blue"), cell(3), attributes='table:number-rows-repeated="2"')
    body = f'<table:table table:name="S">{head}{first}{second}{third}</table:table>'

    assert load(packed(body, "spreadsheet"), "a.ods").text.split("\n")[2:] == [
        "team: red; a: 1; b: 1; c: 1",
        "team: red; a: 2; b: 2",
        "team: blue; a: 3",
        "team: blue; a: 3",
    ]


def test_hidden_sheets_of_a_spreadsheet_are_left_out_and_told(load) -> None:
    styles = (
        '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
    )
    hidden = f'<table:table table:name="H" table:style-name="h">{row(cell("secret"))}</table:table>'
    seen = f'<table:table table:name="S">{row(cell("x"))}</table:table>'

    found = load(packed(hidden + seen, "spreadsheet", styles), "a.ods")

    assert found.text == "S\n\nx"
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("hidden_sheets", {"sheets": ["H"]})]
    with pytest.raises(EmptyDocument, match="hidden"):
        load(packed(hidden, "spreadsheet", styles), "a.ods")


def test_rows_said_once_for_a_million_are_over_the_limit(load) -> None:
    rows = row(cell("word"), attributes='table:number-rows-repeated="999999999"')
    body = f'<table:table table:name="S">{rows}</table:table>'

    with pytest.raises(DocumentLimitExceeded):
        load(packed(body, "spreadsheet"), "a.ods", limits={"max_characters": 10_000})


def test_a_presentation_is_read_slide_by_slide(load) -> None:
    styles = (
        '<style:style style:name="h" style:family="drawing-page">'
        '<style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )

    def frame(text: str, kind: str) -> str:
        return f'<draw:frame presentation:class="{kind}"><draw:text-box>{text}</draw:text-box></draw:frame>'

    deeper = f"<text:list><text:list-item>{p('b')}</text:list-item></text:list>"
    outline = f"<text:list><text:list-item>{p('a')}{deeper}</text:list-item></text:list>"
    notes = f"<presentation:notes>{frame(p('say'), 'notes')}{frame(p('7'), 'page-number')}</presentation:notes>"
    group = f"<draw:g><draw:custom-shape>{p('grouped')}</draw:custom-shape></draw:g>"
    image = "<draw:frame><draw:image/><svg:title>n</svg:title><svg:desc>A barn</svg:desc></draw:frame>"
    pages = (
        f"<draw:page>{frame(outline, 'outline')}{frame(p('Title'), 'title')}{group}{notes}</draw:page>"
        f'<draw:page draw:style-name="h">{image}{frame(p("3"), "page-number")}</draw:page>'
    )

    found = load(packed(pages, "presentation", styles), "a.odp")

    assert found.text == "Title\n\na\n  - b\n\ngrouped\n\nNotes: say\n\nSlide 2\n\nA barn"
    assert [page.number for page in found.pages] == [1, 2]
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("hidden_slides", {"pages": [2]})]


def test_a_presentation_of_pictures_only_has_no_extractable_text(load) -> None:
    with pytest.raises(NoExtractableText):
        load(packed("<draw:page><draw:frame><draw:image/></draw:frame></draw:page>", "presentation"), "a.odp")


def test_an_encrypted_file_says_that_no_password_helps(load) -> None:
    manifest = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"

    with pytest.raises(PasswordRequired) as caught:
        load(packed(p("x"), manifest=manifest), "a.odt")
    assert "without a password" in (caught.value.hint or "")


@pytest.mark.parametrize(("body", "kind"), [("", "text"), (p(" "), "text"), ("", "spreadsheet"), ("", "presentation")])
def test_a_file_that_says_nothing_is_empty(load, body: str, kind: str) -> None:
    with pytest.raises(EmptyDocument):
        load(packed(body, kind), "a.odt")


def test_what_has_no_body_is_damaged(load) -> None:
    with pytest.raises(DamagedDocument, match="no OpenDocument"):
        load(packed("", "database"), "a.odt")


NESTS = {
    "sections": (240, "<text:section>", "</text:section>"),
    "lists": (110, "<text:list><text:list-item>", "</text:list-item></text:list>"),
    "tables": (
        80,
        "<table:table><table:table-row><table:table-cell>",
        "</table:table-cell></table:table-row></table:table>",
    ),
    "spans": (0, "<text:p>" + "<text:span>" * 240 + "deep" + "</text:span>" * 240 + "</text:p>", ""),
}


@pytest.mark.parametrize("nest", NESTS)
def test_a_deep_nest_is_read(text_of, nest: str) -> None:
    times, opening, closing = NESTS[nest]

    assert "deep" in text_of(opening * max(times, 1) + p("deep") + closing * times)


def test_more_levels_than_any_document_has_are_over_the_limit(load) -> None:
    with pytest.raises(DocumentLimitExceeded, match="nested"):
        load(packed("<text:section>" * 300 + p("deep") + "</text:section>" * 300), "a.odt")
