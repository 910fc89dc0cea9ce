from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument
from app.ingestion.loaders.rtf_reader import read

FONTS = (
    r"{\fonttbl{\f0\froman\fcharset0 Times;}{\f1\fnil\fcharset134 SimSun;}{\f2\fcharset128 MS Mincho;}"
    r"{\f3\fcharset204 Arial Cyr;}{\f4\fcharset2 Symbol;}{\f5\fnil\cpg1250 Old;}}"
)
STYLES = (
    r"{\stylesheet{\s0 Normal;}{\s1\sbasedon0 heading 1;}{\s2{\*\soutlvl}\outlinelevel1 Own;}{\*\cs10 Default Font;}}"
)


def codes(text: str, encoding: str) -> str:
    return "".join(f"\\'{byte:02x}" for byte in text.encode(encoding))


@pytest.fixture
def text_of(load) -> Callable[[str], str]:
    return lambda inside: load(b"{\\rtf1\\ansi\\ansicpg1252\\deff0" + inside.encode("latin-1") + b"}", "a.rtf").text


def test_paragraphs_lines_tabs_and_signs_are_read(text_of) -> None:
    written = (
        r"one\tab two\line three\par\pard  four\~five\-six\_seven \\ \{\}\emdash\ldblquote x\rdblquote" + "\r\nend"
    )

    assert text_of(written) == "one\ttwo\nthree\n\nfour\u00a0five\u00adsix\u2011seven \\ {}—“x”end"


@pytest.mark.parametrize(
    ("font", "text", "encoding"),
    [
        (0, "Grüße €", "cp1252"),
        (1, "客户表", "gb18030"),
        (2, "表ソ能力", "cp932"),
        (3, "Привет", "cp1251"),
        (5, "łąka", "cp1250"),
    ],
)
def test_bytes_are_read_by_the_charset_of_their_font(text_of, font: int, text: str, encoding: str) -> None:
    assert text_of(FONTS + rf"\f{font} " + codes(text, encoding) + r"\par") == text


def test_a_letter_of_two_bytes_may_end_with_a_plain_letter(text_of) -> None:
    first, second = "ア".encode("cp932")

    assert text_of(FONTS + rf"\f2 \'{first:02x}" + chr(second)) == "ア"


def test_a_letter_of_two_bytes_may_be_parted_by_the_end_of_a_line(text_of) -> None:
    first, second = "客".encode("gb18030")

    assert text_of(FONTS + rf"\f1 \'{first:02x}" + "\r\n" + rf"\'{second:02x}") == "客"


def test_fonts_that_leave_it_to_the_document_are_read_by_its_code_page(load) -> None:
    data = r"{\rtf1\ansi\ansicpg936" + FONTS + r"\f0 " + codes("客户", "gbk") + r"\par caf\'e9 }"

    assert load(data.encode(), "a.rtf").text == "客户\n\ncafé"


def test_characters_told_by_number_leave_out_what_stands_in_for_them(text_of) -> None:
    assert text_of(r"\u23458?\uc2\u25143\'bb\'a7\uc0\u8364 x\uc1\u-3913?\u-10179?\u-8704?") == "客户€x•😀"


def test_letters_of_symbol_fonts_are_bullets(text_of) -> None:
    assert text_of(FONTS + r"{\f4\'a8} a") == "• a"


def test_headings_are_known_by_style_and_outline(load) -> None:
    body = r"\pard\s1 One\par\pard\s2 Two\par\pard\outlinelevel2 Three\par\pard plain\par}"

    found = load((r"{\rtf1" + FONTS + STYLES + body).encode(), "a.rtf")

    assert found.text == "One\n\nTwo\n\nThree\n\nplain"
    assert [(heading.level, heading.title, heading.start) for heading in found.headings] == [
        (1, "One", 0),
        (2, "Two", 5),
        (3, "Three", 10),
    ]
    assert found.title == "One"


def test_the_title_is_that_of_the_properties(load) -> None:
    info = r"{\info{\author Me}{\upr{\title b\'fc}{\*\ud{\title b\u252\'fc}}}{\creatim\yr2026}}"

    found = load((r"{\rtf1\ansi" + info + r"text}").encode(), "a.rtf")

    assert (found.title, found.text) == ("bü", "text")


def test_list_items_have_their_marks_and_lines(text_of) -> None:
    items = r"{\listtext\f4\'b7\tab}one\par{\listtext 2.\tab}two\par{\pntext 3)\tab}three\par after\par"

    assert text_of(FONTS + r"before\par " + items) == "before\n\n- one\n2. two\n3) three\n\nafter"


def test_tables_read_row_by_row(text_of) -> None:
    row = r"\trowd\cellx1\cellx2\pard\intbl a\par b\cell c\cell{\trowd\row}"
    frame = r"\trowd\cellx1\pard\intbl framed\cell\row"

    assert text_of(row + row + frame + r"\pard after\par") == "a b | c\na b | c\n\nframed\n\nafter"


def test_what_is_hidden_deleted_or_of_the_machinery_is_out(text_of) -> None:
    hidden = r"{\v secret}{\deleted gone}{\*\unknown x}{\pict 0102}{\xe index}{\*\bkmkstart m}"
    field = r"{\field{\*\fldinst HYPERLINK \'22x\'22}{\fldrslt link}}"

    assert text_of(r"{\colortbl;\red0;}a" + hidden + field + r"\v b\v0 c\v d\plain e") == "alinkce"


def test_bytes_of_pictures_are_passed_over_whatever_they_are(text_of) -> None:
    assert text_of(r"a{\pict\bin5 }}{{\par}b") == "ab"


def test_notes_stand_at_the_end_headers_and_footers_once_around(text_of) -> None:
    margins = r"{\header DRAFT\par}{\headerf DRAFT\par}{\footer\chpgn}{\footerl foot}"

    assert text_of(margins + r"claim{\footnote \chftn noted\par} on\par") == "DRAFT\n\nclaim[1] on\n\n[1] noted\n\nfoot"


def test_text_boxes_follow_their_paragraph(text_of) -> None:
    shape = r"{\shp{\*\shpinst\shpleft0\shptop0{\sp{\sn name}{\sv value}}{\shptxt boxed\par}}{\shprslt old}}"

    assert text_of(r"be" + shape + r"fore\par last\par") == "before\n\nboxed\n\nlast"


def test_of_a_text_told_twice_the_one_in_unicode_is_read(text_of) -> None:
    assert text_of(r"{\upr{?}{\*\ud{\u23458?}}}{\*\bkmkstart{\upr{a}{\*\ud{b}}}}x") == "客x"


def test_what_stands_behind_the_last_brace_is_not_of_the_document(load) -> None:
    assert load(rb"{\rtf1 in}out", "a.rtf").text == "in"


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(load) -> None:
    found = load(rb"{\rtf1 first\par sec", "a.rtf")

    assert found.text == "first\n\nsec"
    assert [notice.code for notice in found.warnings] == ["file_cut_off"]


def test_bytes_that_are_no_character_are_told(load) -> None:
    found = load(rb"{\rtf1\ansi a\'81b}", "a.rtf")

    assert found.text == "ab"
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("characters_removed", {"count": 1})]


def test_a_file_that_says_nothing_is_empty(load) -> None:
    with pytest.raises(EmptyDocument):
        load(rb"{\rtf1\ansi {\pict 00}\par}", "a.rtf")


def test_groups_in_groups_beyond_all_measure_are_over_the_limit(load) -> None:
    assert load(b"{\\rtf1 " + b"{" * 5_000 + b"deep", "a.rtf").text == "deep"
    with pytest.raises(DocumentLimitExceeded):
        load(b"{\\rtf1 " + b"{" * 20_000 + b"deep", "a.rtf")


def test_noise_that_is_named_as_rich_text_is_damaged(load) -> None:
    with pytest.raises(DamagedDocument):
        load(bytes(range(32)) * 40, "a.rtf")


PIECES = st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"\\",
            b"\\par ",
            b"\\'",
            b"\\'81",
            b"\\'e9",
            b"\\u-10179?",
            b"\\u55357",
            b"\\uc9",
            b"\\bin9999 ",
        ),
        *(
            b"\\*",
            b"\\v",
            b"\\cell",
            b"\\row",
            b"\\intbl",
            b"{\\fonttbl{\\f0\\fcharset128 x;}}",
            b"\\f0 ",
            b"{\\upr",
            b"\\ud",
        ),
        *(
            b"{\\stylesheet{\\s1 heading 9;}}",
            b"\\s1",
            b"{\\footnote ",
            b"{\\listtext ",
            b"{\\shptxt ",
            b"text",
            b"\r\n",
            b"\0",
        ),
        *(b"\\ansicpg99999 ", b"\\outlinelevel-3 ", b"{\\info{\\title ", b"\\f-99999 ", b"\\cpg65001 "),
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES | st.binary(max_size=6), max_size=40).map(b"".join))
def test_any_bytes_are_read_to_text_that_can_be_stored(data: bytes) -> None:
    story = read(b"{\\rtf1" + data)

    for flow in (story.body, *story.headers, *story.footers, *story.notes):
        flow.text().encode()
