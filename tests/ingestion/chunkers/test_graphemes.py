import pytest

from app.ingestion.chunkers.graphemes import can_part, part_after, part_before

WHOLE = [
    "👩‍👩‍👧",
    "🇫🇮",
    "👍🏽",
    "e\u0301",
    "क्षि",
    "각",
    "\u1112\u1161\u11ab",
    "🏴\U000e0067\U000e0062\U000e007f",
    "1\ufe0f\u20e3",
    "\r\n",
]


@pytest.mark.parametrize("character", WHOLE)
def test_what_a_reader_sees_as_one_is_not_torn(character):
    text = character * 2
    assert [place for place in range(len(text) + 1) if can_part(text, place)] == [0, len(character), len(text)]


@pytest.mark.parametrize("text", ["ab", "今天", "a猫", "🇫🇮🇸🇪", "שב", "a b", "猫👍"])
def test_other_neighbours_can_be_parted(text):
    middle = len(text) // 2
    assert can_part(text, middle)


def test_the_nearest_place_is_found_on_either_side():
    text = "ab👩‍👩‍👧cd"
    assert part_before(text, 5, 0) == 2
    assert part_after(text, 3, len(text)) == 7
    assert part_before("👩‍👩‍👧", 3, 0) == 3
