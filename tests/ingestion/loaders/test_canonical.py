import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.loaders.canonical import Assembly, canonical, on_one_line

ANYTHING = st.text(st.characters())


@given(ANYTHING)
def test_canonical_text_is_composed_and_holds_nothing_unstorable(text: str) -> None:
    result, removed = canonical(text)

    assert unicodedata.is_normalized("NFC", result)
    assert not any(letter in "\0\r" or "\ud800" <= letter <= "\udfff" for letter in result)
    assert removed == sum(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)
    assert canonical(result) == (result, 0)


@given(st.lists(ANYTHING, min_size=1), st.sampled_from(["\n", "\n\n"]))
def test_each_block_stands_where_the_assembly_says(blocks: list[str], separator: str) -> None:
    assembly = Assembly(max_characters=10_000_000)
    starts = [assembly.add(block, separator) for block in blocks]
    assembly.add("so that it is never empty", separator)

    text = assembly.text()
    assert text == canonical(text)[0]
    for block, start in zip(blocks, starts, strict=True):
        assert text[start:].startswith(canonical(block)[0])


def test_removed_characters_are_told() -> None:
    assembly = Assembly(100)
    assembly.add("of\0ce e\ufb03cient")

    assert assembly.text() == "ofce e\ufb03cient"
    assert [notice.as_json() for notice in assembly.notices()] == [
        {"code": "characters_removed", "detail": "1 NUL or lone surrogate characters were removed", "count": 1}
    ]


def test_white_space_alone_is_an_empty_document() -> None:
    assembly = Assembly(100)
    assembly.add(" \u3000\t")

    with pytest.raises(EmptyDocument):
        assembly.text()


def test_a_text_above_the_limit_names_the_setting() -> None:
    assembly = Assembly(10)

    with pytest.raises(DocumentLimitExceeded) as caught:
        assembly.add("eleven signs")
    assert "FOOTNOTE_MAX_CHARACTERS" in (caught.value.hint or "")


def test_one_line_has_single_spaces() -> None:
    assert on_one_line(" a\r\n\tb \u3000 c\n") == "a b c"
