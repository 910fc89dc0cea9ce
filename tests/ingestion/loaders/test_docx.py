import io
import subprocess
import sys
import zipfile
from collections.abc import Callable

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument
from app.ingestion.loaders.docx_numbering import formatted
from app.ingestion.loaders.docx_styles import _over

TEXT_BOX = """<w:p><w:r><mc:AlternateContent>
<mc:Choice Requires="wps"><w:drawing><wps:txbx><w:txbxContent>{0}</w:txbxContent></wps:txbx></w:drawing></mc:Choice>
<mc:Fallback><w:pict><v:textbox><w:txbxContent>{0}</w:txbxContent></v:textbox></w:pict></mc:Fallback>
</mc:AlternateContent></w:r></w:p>"""


CORE = (
    '<Relationship Id="core" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/'
    'core-properties" Target="docProps/core.xml"/>'
)
DUBLIN_CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>  The  Book </dc:title></cp:coreProperties>'
)
NOWHERE = (
    '<Relationship Id="a" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/>'
)


def repacked(data: bytes, change: Callable[[str, str], str], **added: str) -> bytes:
    """Return a package in which `change(name, text)` has rewritten each part."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as given, zipfile.ZipFile(packed, "w") as out:
        for name in given.namelist():
            out.writestr(name, change(name, given.read(name).decode()))
        for name, text in added.items():
            out.writestr(name, text)
    return packed.getvalue()


def cell(inside: str) -> str:
    return f"<w:tc>{inside}</w:tc>"


def table(*rows: list[str]) -> str:
    return "<w:tbl>" + "".join(f"<w:tr>{''.join(map(cell, row))}</w:tr>" for row in rows) + "</w:tbl>"


def test_header_table_text_box_and_content_control_come_once_and_in_the_order_of_the_body(
    load, make_docx, paragraph
) -> None:
    control = f"<w:sdt><w:sdtContent>{paragraph('in a control')}</w:sdtContent></w:sdt>"
    big = table([paragraph("first cell") + TEXT_BOX.format(paragraph("SECRET-42")) + control])
    sections = '<w:sectPr><w:headerReference r:id="header_1"/><w:headerReference r:id="header_2"/></w:sectPr>'
    parts = {"header_1": paragraph("DRAFT 7"), "header_2": paragraph("DRAFT 7")}

    assert (
        load(make_docx(big + sections, **parts), "a.docx").text == "DRAFT 7\n\nfirst cell\n\nSECRET-42\n\nin a control"
    )


def test_insertions_are_in_and_deletions_are_out(load, make_docx) -> None:
    body = (
        "<w:p><w:r><w:t>kept</w:t></w:r><w:ins><w:r><w:t> inserted</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText> deleted</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t> moved</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t> moved</w:t></w:r></w:moveTo>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t> hidden</w:t></w:r></w:p>"
    )

    assert load(make_docx(body), "a.docx").text == "kept inserted moved"


def test_each_style_is_resolved_once_however_long_its_inheritance(load, make_docx, paragraph, monkeypatch) -> None:
    asked = []

    def over(element, inherited):
        asked.append(element.tag)
        return _over(element, inherited)

    monkeypatch.setattr("app.ingestion.loaders.docx_styles._over", over)
    # The last one is based on the first: a circle.
    based = [*range(1, 300), 0]
    styles = "".join(
        f'<w:style w:styleId="s{n}"><w:basedOn w:val="s{base}"/></w:style>' for n, base in enumerate(based)
    )
    body = "".join(paragraph("words", f'<w:pStyle w:val="s{n}"/>') for n in based)
    assert load(make_docx(body, styles=styles), "a.docx").text.count("words") == 300
    assert len([tag for tag in asked if tag.endswith("}style")]) == 300


def test_headings_are_known_by_style_name_outline_and_inheritance(load, make_docx, paragraph) -> None:
    styles = (
        '<w:style w:styleId="a"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="b"><w:name w:val="Überschrift 2"/></w:style>'
        '<w:style w:styleId="c"><w:name w:val="Own"/><w:basedOn w:val="b"/></w:style>'
        '<w:style w:styleId="t"><w:name w:val="Title"/></w:style>'
    )
    body = paragraph("The title", '<w:pStyle w:val="t"/>')
    body += "".join(paragraph(f"Style {name}", f'<w:pStyle w:val="{name}"/>') for name in "abc")
    body += paragraph("By outline", '<w:outlineLvl w:val="2"/>') + paragraph("plain")
    extraction = load(make_docx(body, styles=styles), "a.docx")

    assert extraction.title == "The title"
    assert [(heading.level, heading.title) for heading in extraction.headings] == [
        (1, "Style a"),
        (2, "Style b"),
        (2, "Style c"),
        (3, "By outline"),
    ]
    assert all(extraction.text[heading.start :].startswith(heading.title) for heading in extraction.headings)


def test_lists_are_numbered_as_word_shows_them(load, make_docx, paragraph) -> None:
    levels = (
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>'
    )
    bullets = '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>'
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="1">{bullets}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="0"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
    )

    def item(text: str, list_id: int, level: int = 0) -> str:
        return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')

    body = item("a", 1) + item("b", 1) + item("b1", 1, 1) + item("b2", 1, 1) + item("c", 1) + item("c1", 1, 1)
    body += paragraph("text") + item("dot", 2) + item("seven", 3) + item("eight", 3)

    assert load(make_docx(body, numbering=numbering), "a.docx").text == (
        "1. a\n2. b\n  2.a) b1\n  2.b) b2\n3. c\n  3.a) c1\n\ntext\n\n- dot\n7. seven\n8. eight"
    )


@pytest.mark.parametrize(
    ("number", "form", "written"),
    [
        (4, "upperRoman", "IV"),
        (28, "lowerLetter", "bb"),
        (7, "decimalZero", "07"),
        (21, "chineseCountingThousand", "二十一"),
        (10, "japaneseCounting", "十"),
        (3, "decimalEnclosedCircle", "③"),
        (12, "unknownForm", "12"),
    ],
)
def test_numbers_are_written_in_their_format(number: int, form: str, written: str) -> None:
    assert formatted(number, form) == written


def test_tables_read_row_by_row_with_nested_ones_inside(load, make_docx, paragraph) -> None:
    inner = table([paragraph("x"), paragraph("y")])
    body = table(
        [paragraph("Name"), paragraph("Home")],
        [paragraph("Teal") + paragraph("(duck)"), inner + paragraph("")],
    )

    assert load(make_docx(body), "a.docx").text == "Name | Home\nTeal (duck) | x | y"


def test_a_deleted_row_is_out_and_a_controlled_row_is_in(load, make_docx, paragraph) -> None:
    def row(text: str, properties: str = "") -> str:
        return f"<w:tr>{properties}{cell(paragraph(text))}{cell(paragraph('z'))}</w:tr>"

    rows = row("gone", "<w:trPr><w:del/></w:trPr>") + row("kept")
    body = f"<w:tbl>{rows}<w:sdt><w:sdtContent>{row('controlled')}</w:sdtContent></w:sdt></w:tbl>"

    assert load(make_docx(body), "a.docx").text == "kept | z\ncontrolled | z"


def test_footnotes_stand_at_the_end_with_their_marks(load, make_docx, paragraph) -> None:
    body = '<w:p><w:r><w:t>claim</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>' + paragraph("more")
    notes = f'<w:footnote w:id="0">{paragraph("separator")}</w:footnote>'
    notes += f'<w:footnote w:id="2">{paragraph("its source")}</w:footnote>'

    assert load(make_docx(body, footnotes=notes), "a.docx").text == "claim[1]\n\nmore\n\n[1] its source"


def test_a_footnote_with_many_references_comes_once(load, make_docx, paragraph) -> None:
    body = '<w:p><w:r><w:t>claim</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>' * 2
    notes = f'<w:footnote w:id="2">{paragraph("its source")}</w:footnote>'

    assert load(make_docx(body, footnotes=notes), "a.docx").text == "claim[1]\n\nclaim[1]\n\n[1] its source"


def test_math_is_written_on_a_line(load, make_docx) -> None:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    fraction = f"<m:f><m:num>{run('a+b')}</m:num><m:den>{run('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{run('x')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>"
    body = f"<w:p><m:oMath>{power}{run('=')}{fraction}</m:oMath></w:p>"

    assert load(make_docx(body), "a.docx").text == "x^2=(a+b)/2"


def test_breaks_tabs_and_hyphens_are_kept(load, make_docx) -> None:
    run = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:softHyphen/></w:r>"

    assert load(make_docx(f"<w:p>{run}</w:p>"), "a.docx").text == "a\tb\nc\u2011d\u00ad"


def test_a_document_of_the_strict_variant_is_read(load, make_docx, paragraph) -> None:
    strict = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make_docx(paragraph("strict text")))) as given, zipfile.ZipFile(strict, "w") as out:
        for name in given.namelist():
            data = given.read(name).replace(
                b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
                b"http://purl.oclc.org/ooxml/wordprocessingml/main",
            )
            out.writestr(name, data)

    assert load(strict.getvalue(), "a.docx").text == "strict text"


def test_a_part_that_unpacks_to_a_bomb_is_refused(load, make_docx, paragraph) -> None:
    data = make_docx(paragraph(" " * 30_000_000))

    assert len(data) < 100_000
    with pytest.raises(DocumentLimitExceeded) as caught:
        load(data, "bomb.docx", limits={"parse_memory_bytes": 200_000_000})
    assert "FOOTNOTE_PARSE_MEMORY_BYTES" in (caught.value.hint or "")


def test_entities_are_never_resolved(load, make_docx) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(
            "word/document.xml",
            '<!DOCTYPE d [<!ENTITY x "leaked">]><w:document xmlns:w='
            '"http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>seen</w:t>'
            "<w:t>&x;</w:t></w:r></w:p></w:body></w:document>",
        )

    assert load(packed.getvalue(), "a.docx").text == "seen"


@pytest.mark.parametrize("missing", ["word/document.xml", "middle"])
def test_a_container_without_its_document_is_damaged(load, make_docx, paragraph, missing: str) -> None:
    data = bytearray(make_docx(paragraph("text " * 1000)))
    if missing == "middle":
        data[300:420] = bytes(120)
    else:
        data = bytearray(bytes(data).replace(b"word/document.xml", b"word/documenX.xml"))

    with pytest.raises(DamagedDocument):
        load(bytes(data), "a.docx")


def test_a_document_without_text_is_empty(load, make_docx) -> None:
    with pytest.raises(EmptyDocument):
        load(make_docx("<w:p/>"), "a.docx")


def test_the_title_is_that_of_the_core_properties(load, make_docx, paragraph) -> None:
    def relate(name: str, text: str) -> str:
        return text.replace("</Relationships>", CORE + "</Relationships>") if name == "_rels/.rels" else text

    data = make_docx(paragraph("text"))

    assert load(data, "a.docx").title is None
    assert load(repacked(data, relate, **{"docProps/core.xml": DUBLIN_CORE}), "a.docx").title == "The Book"
    assert load(repacked(data, relate, **{"docProps/core.xml": "<other/>"}), "a.docx").title is None


@pytest.mark.parametrize(("kind", "target"), [("image", "NULL"), ("hyperlink", "#mark"), ("header", "gone.xml")])
def test_a_relationship_that_leads_nowhere_is_passed_over(load, make_docx, paragraph, kind: str, target: str) -> None:
    def relate(name: str, text: str) -> str:
        return (
            text.replace("<Relationship ", NOWHERE.format(kind, target) + "<Relationship ") if "word/" in name else text
        )

    body = paragraph("text") + '<w:sectPr><w:headerReference r:id="a"/><w:headerReference r:id="header"/></w:sectPr>'

    assert load(repacked(make_docx(body, header=paragraph("top")), relate), "a.docx").text == "top\n\ntext"


def test_a_damaged_part_that_is_not_read_does_no_harm(load, make_docx, paragraph) -> None:
    def relate(name: str, text: str) -> str:
        settings = NOWHERE.format("settings", "settings.xml")
        return text.replace("</Relationships>", settings + "</Relationships>") if "word/_rels" in name else text

    data = repacked(make_docx(paragraph("text")), relate, **{"word/settings.xml": "<broken"})

    assert load(data, "a.docx").text == "text"


def test_comments_of_xml_do_not_cut_text(load, make_docx) -> None:
    assert load(make_docx("<w:p><w:r><w:t>be<!-- x -->fore</w:t></w:r></w:p>"), "a.docx").text == "before"


def test_a_footnote_that_refers_to_itself_comes_once(load, make_docx) -> None:
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    note = f'<w:footnote w:id="2"><w:p><w:r><w:t>see</w:t></w:r>{reference}</w:p></w:footnote>'

    assert load(make_docx(f"<w:p>{reference}</w:p>", footnotes=note), "a.docx").text == "[1]\n\n[1] see[1]"


NESTS = {
    "tables": (80, "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"),
    "rows": (60, "<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc>", "</w:tc></w:tr></w:tbl>"),
    "controls": (120, "<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"),
    "boxes": (60, "<w:p><w:r><w:pict><w:txbxContent>", "</w:txbxContent></w:pict></w:r></w:p>"),
    "formulas": (1, "<w:p>" + "<m:x>" * 240 + "<m:t>in</m:t>" + "</m:x>" * 240 + "</w:p>", ""),
}


@pytest.mark.parametrize("nest", NESTS)
def test_a_deep_nest_is_read_and_one_beyond_all_measure_is_refused(load, make_docx, paragraph, nest: str) -> None:
    times, opening, closing = NESTS[nest]

    assert "in" in load(make_docx(opening * times + paragraph("in") + closing * times), "a.docx").text
    if closing:
        with pytest.raises(DocumentLimitExceeded, match="nested"):
            load(make_docx(opening * 300 + paragraph("in") + closing * 300), "a.docx")


@pytest.mark.parametrize("value", ["²", "--5", "9" * 5000, "", "1.5"])
def test_a_number_that_is_none_is_passed_over(load, make_docx, paragraph, value: str) -> None:
    properties = f'<w:outlineLvl w:val="{value}"/><w:numPr><w:ilvl w:val="{value}"/><w:numId w:val="1"/></w:numPr>'

    assert load(make_docx(paragraph("item", properties)), "a.docx").text == "- item"


def test_other_formats_are_read_without_importing_python_docx() -> None:
    code = "import sys, app.ingestion.registry; sys.exit('docx' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
