import time

import pytest

from app.errors import EmptyDocument, UndecodableText


def test_text_stays_as_it_is_written(load) -> None:
    extraction = load(b"  one\n\n\ttwo  \n", "a.txt")

    assert extraction.text == "  one\n\n\ttwo  \n"
    assert (extraction.parser, extraction.source_type, extraction.encoding) == ("text", "text", "utf-8")
    assert extraction.pages == extraction.headings == extraction.warnings == ()


def test_line_ends_become_one_kind(load) -> None:
    assert load(b"one\r\ntwo\rthree\n", "a.txt").text == "one\ntwo\nthree\n"


def test_letters_are_composed(load) -> None:
    assert load("cafe\u0301".encode(), "a.txt").text == "caf\u00e9"


def test_ligatures_and_full_width_forms_stay_for_the_analyzer(load) -> None:
    assert load("e\ufb03cient ＡＰＩ".encode(), "a.txt").text == "e\ufb03cient ＡＰＩ"


def test_nul_and_lone_surrogates_go_with_a_warning(load) -> None:
    extraction = load("of\0ce \ud800tower".encode("utf-8", "surrogatepass"), "a.txt")

    assert extraction.text == "ofce tower"
    assert [warning.as_json()["count"] for warning in extraction.warnings] == [2]


def test_the_charset_of_the_content_type_is_used(load) -> None:
    extraction = load("naïve".encode("mac_roman"), "a.txt", declared="text/plain; charset=macintosh")

    assert (extraction.text, extraction.encoding) == ("naïve", "mac-roman")


@pytest.mark.parametrize("data", [b" \n\t\r\n", "\u3000\u00a0".encode(), b"\xef\xbb\xbf", b"\0"])
def test_white_space_only_is_an_empty_document(load, data: bytes) -> None:
    with pytest.raises(EmptyDocument):
        load(data, "a.txt")


def test_bytes_of_no_charset_never_become_replacement_characters(load) -> None:
    with pytest.raises(UndecodableText):
        load("会议纪要".encode("gbk") * 30 + b"\xff\xff", "a.txt")


def test_fifty_megabytes_load_in_seconds(load) -> None:
    line = "会议纪要 and its minutes.\n"
    data = line.encode("gbk") * 2_000_000

    began = time.process_time()
    extraction = load(data, "a.txt")

    assert len(data) > 50_000_000
    assert len(extraction.text) == 2_000_000 * len(line)
    assert time.process_time() - began < 10
