"""Markers are read in every form that models write, and mean the same in text and JSON."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.answering.markers import canonical_markers, claims_of, with_marker, without_markers


@pytest.mark.parametrize(
    ("text", "expected", "removed"),
    [
        ("A [2]. B [9].", "A [2]. B.", 1),
        ("A [1][3].", "A [1][3].", 0),
        ("A [1, 2] and [3,1].", "A [1][2] and [3][1].", 0),
        ("A [1-3].", "A [1][2][3].", 0),
        ("A [2–9].", "A [2][3].", 6),
        ("A [1] [2].", "A [1][2].", 0),
        ("部署［１］。方案【2】。", "部署[1]。方案[2]。", 0),
        ("A 【2†source】.", "A [2].", 0),
        ("A [Source 2], [^1] and [来源3].", "A [2], [1] and [3].", 0),
        ("A [9] [8] [2].", "A [2].", 2),
        ("A [9] [8].", "A.", 2),
        ("One [7] two.", "One two.", 1),
        ("One[7] two [0]three.", "One two three.", 2),
        ("[9] Start.\n[8] Next.", "Start.\nNext.", 2),
        ("In [2020] there were [many].", "In [2020] there were [many].", 0),
        ("Use `a[1]` or:\n```\nx = a[9]\n```\nSo [9].", "Use `a[1]` or:\n```\nx = a[9]\n```\nSo.", 1),
        ("Cut ```a[7]", "Cut ```a[7]", 0),
        ("A [1][1].", "A [1].", 0),
        ("", "", 0),
    ],
)
def test_markers_become_canonical_and_invented_ones_leave_no_trace(text: str, expected: str, removed: int) -> None:
    assert canonical_markers(text, 3) == (expected, removed)


@given(st.text(alphabet="a. [](),1239\n【】-†", max_size=60), st.integers(0, 4))
@example("[7[9]]", 3)
def test_canonical_text_stays_as_it_is_and_names_only_sources_that_exist(text: str, count: int) -> None:
    canonical, _ = canonical_markers(text, count)
    assert canonical_markers(canonical, count) == (canonical, 0)
    assert all(1 <= int(number) <= count for number in re.findall(r"\[(\d{1,3})\]", canonical))
    assert all(1 <= marker <= count for claim in claims_of(canonical) for marker in claim.markers)


def claims(text: str) -> list[tuple[str, tuple[int, ...], str]]:
    return [(claim.text, claim.markers, text[claim.start : claim.end]) for claim in claims_of(text)]


def test_a_claim_is_what_its_sentence_says_before_the_marker() -> None:
    text = "Leave is long [1]. Travel is paid [2] and coffee is free [3]. Nothing here."
    assert claims(text) == [
        ("Leave is long .", (1,), "Leave is long [1]."),
        ("Travel is paid", (2,), "Travel is paid [2] and coffee is free [3]."),
        ("and coffee is free .", (3,), "Travel is paid [2] and coffee is free [3]."),
    ]


def test_a_marker_after_the_full_stop_or_alone_on_its_line_speaks_of_the_sentence_before() -> None:
    assert claims("Leave is long. [1] Tea.") == [("Leave is long.", (1,), "Leave is long. [1]")]
    assert claims("Leave is long.\n\n[1][2]") == [("Leave is long.", (1, 2), "Leave is long.")]


def test_a_marker_before_its_words_stands_for_what_follows() -> None:
    assert claims("[2] says that leave is long.") == [
        ("says that leave is long.", (2,), "[2] says that leave is long.")
    ]


def test_a_numbered_item_is_not_a_number_of_the_claim() -> None:
    assert claims("1. Leave is long [1].\n2. Tea is free [2].") == [
        ("Leave is long .", (1,), "1. Leave is long [1]."),
        ("Tea is free .", (2,), "2. Tea is free [2]."),
    ]


def test_code_makes_no_claims() -> None:
    assert claims("See `a[1]` for it.") == []


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It is so.", "It is so [4]."),
        ("是这样。", "是这样[4]。"),
        ("Is it?", "Is it [4]?"),
        ("He said “No.”", "He said “No.” [4]"),
        ("Made by Acme Inc.", "Made by Acme Inc [4]."),
        ("In the U.S.", "In the U.S. [4]"),
        ("a heading", "a heading [4]"),
        ("部署方案", "部署方案[4]"),
        (".", ". [4]"),
    ],
)
def test_a_marker_stands_before_the_closing_sign(sentence: str, expected: str) -> None:
    assert with_marker(sentence, 4) == expected


def test_what_a_source_has_in_brackets_is_not_taken_for_a_marker() -> None:
    assert without_markers("As shown [3],\n it works [12].") == "As shown, it works."
