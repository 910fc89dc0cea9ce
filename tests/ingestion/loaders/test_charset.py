import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import UndecodableText
from app.ingestion.loaders.charset import charset_parameter, declared_in_markup, decode

CHINESE = "今天讨论了部署方案，会议决定下周一之前完成测试，并把结果告诉所有客户。"
TRADITIONAL = "今天討論了部署方案，會議決定下週一之前完成測試，並把結果告訴所有客戶。"
JAPANESE = "今日は配備計画について話し合い、来週の月曜日までに試験を終えることにした。"
KOREAN = "오늘은 배포 계획에 대해 논의했고 다음 주 월요일까지 시험을 마치기로 했다."
RUSSIAN = "Сегодня мы обсудили план развёртывания и решили закончить проверку до понедельника."
GERMAN = "Die Straße war schön, aber für große Lastwagen zu schmal; darüber ärgerten sich viele."
POLISH = "Wczoraj rozmawialiśmy o planie wdrożenia i postanowiliśmy skończyć próby w przyszłym tygodniu."
GREEK = "Σήμερα συζητήσαμε το σχέδιο και αποφασίσαμε να τελειώσουμε τις δοκιμές."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "cp949"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "iso8859_5"),
        (GERMAN, "cp1252"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859_2"),
        (GREEK, "iso8859_7"),
        (CHINESE, "utf-16-le"),
        (JAPANESE, "utf-16-be"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-32-be"),
        (CHINESE, "utf-8"),
    ],
)
def test_a_sentence_is_read_in_the_charset_it_was_written_in(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("客户", "gbk"), ("客戶", "big5"), ("東京", "cp932"), ("東京都", "euc_jp"), ("안녕", "cp949"), ("café", "cp1252")],
)
def test_a_single_word_is_enough(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_one_word_after_six_kilobytes_of_ascii_is_enough() -> None:
    decoded = decode(b"The minutes of the meeting. " * 220 + "東京".encode("cp932"))

    assert decoded.text.endswith("東京")
    assert decoded.encoding == "cp932"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_leaves_the_text(mark: bytes, encoding: str) -> None:
    decoded = decode(mark + CHINESE.encode(encoding))

    assert (decoded.text, decoded.encoding) == (CHINESE, encoding)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])).filter(lambda text: not text.startswith("\ufeff")))
def test_utf_8_is_never_taken_for_something_else(text: str) -> None:
    assert decode(text.encode()).text == text


def test_four_byte_letters_of_gb18030_come_out() -> None:
    text = "地名用字测试：龑䶮𠮷，" + CHINESE

    assert decode(text.encode("gb18030")).text == text


@pytest.mark.parametrize("named", ["latin-1", "iso-8859-1", "windows-1252"])
def test_a_named_charset_is_read_with_its_larger_relative(named: str) -> None:
    assert decode("“no” – said she at the café".encode("cp1252"), named).text == "“no” – said she at the café"


def test_a_named_charset_that_does_not_fit_is_not_believed() -> None:
    assert decode(JAPANESE.encode("cp932"), "euc-jp").text == JAPANESE


@pytest.mark.parametrize("named", ["no-such-charset", "undefined", "idna", "zip", "base64", "utf-7", "\u5ba2"])
def test_a_named_charset_that_is_none_is_not_believed(named: str) -> None:
    assert decode(CHINESE.encode("gbk"), named).text == CHINESE


def test_lone_surrogates_in_utf_8_are_decoded_for_removal() -> None:
    assert decode(b"one \xed\xa0\x80 two").text == "one \ud800 two"


@pytest.mark.parametrize(
    "data",
    [
        CHINESE.encode("gbk") * 20 + b"\xff" + CHINESE.encode("gbk") * 20,
        (CHINESE * 20).encode()[:-1],
        (CHINESE * 20).encode() + b"\xa4\xff",
        codecs.BOM_UTF16_LE + b"a\x00b",
        bytes(range(0x80, 0x100)) * 4,
    ],
    ids=["broken gbk", "cut utf-8", "utf-8 and more", "odd utf-16", "every high byte"],
)
def test_bytes_that_no_charset_decodes_whole_are_refused(data: bytes) -> None:
    with pytest.raises(UndecodableText):
        decode(data)


def test_the_error_names_the_likely_charset_and_the_byte() -> None:
    good = CHINESE.encode("gbk") * 20

    with pytest.raises(UndecodableText, match=f"gb18030, but not byte {len(good)}"):
        decode(good + b"\xff\xff" + good)


@pytest.mark.parametrize(
    ("markup", "named"),
    [
        (b'<?xml version="1.0" encoding="big5"?><a/>', "big5"),
        (b"<html><head><meta charset=gb2312></head>", "gb2312"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-6">', "iso-8859-6"),
        (b"<html><body>charset=none</body>", None),
    ],
)
def test_markup_declares_its_charset(markup: bytes, named: str | None) -> None:
    assert declared_in_markup(markup) == named


def test_a_content_type_may_name_a_charset() -> None:
    assert charset_parameter('text/plain; charset="GBK"') == "GBK"
    assert charset_parameter("text/plain") is None
    assert charset_parameter(None) is None
