"""Sentences keep exact offsets and end where a reader would end them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.sentences import MAX_CHARACTERS, split_sentences


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One day. Two days! Three?", ["One day.", "Two days!", "Three?"]),
        ("第一句。第二句！“第三句？”最后", ["第一句。", "第二句！", "“第三句？”", "最后"]),
        (
            "Dr. Smith met J. R. Ewing at 5.30 p.m. on Nov. 3 in the U.S. office. He left.",
            ["Dr. Smith met J. R. Ewing at 5.30 p.m. on Nov. 3 in the U.S. office.", "He left."],
        ),
        ("See Fig. 3 and e.g. Table 2. Done.", ["See Fig. 3 and e.g. Table 2.", "Done."]),
        ("Version 3.11 runs. It is e.g. fast.", ["Version 3.11 runs.", "It is e.g. fast."]),
        ("It is so [1]. That is not. [2] End [3][4].", ["It is so [1].", "That is not. [2]", "End [3][4]."]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("中文。English follows. 又是中文", ["中文。", "English follows.", "又是中文"]),
        (
            "# Leave\n\n- 320 days\n- 20 hours\n\n| a | b |\n|---|---|\n| 1 | 2 |",
            ["Leave", "320 days", "20 hours", "| a | b |", "| 1 | 2 |"],
        ),
        ("team: hr\nyear: 2026\nOwner: Ann", ["team: hr", "year: 2026", "Owner: Ann"]),
        (
            "city: Oslo; country: Norway; population: 709037; note: capital since 1814\n"
            "city: Bergen; country: Norway; population: 291940; note: second largest",
            [
                "city: Oslo; country: Norway; population: 709037; note: capital since 1814",
                "city: Bergen; country: Norway; population: 291940; note: second largest",
            ],
        ),
        (
            "people[0].name: Anna Maria Svensson of the northern department\npeople[0].role (now): the engineer",
            ["people[0].name: Anna Maria Svensson of the northern department", "people[0].role (now): the engineer"],
        ),
        ("1. First step\n2. Second step", ["1. First step", "2. Second step"]),
        (
            "This line of a page was wrapped by its\nprinter and goes on here. End.",
            ["This line of a page was wrapped by its\nprinter and goes on here.", "End."],
        ),
        ("Visit example.com/a.b?c=d now. OK", ["Visit example.com/a.b?c=d now.", "OK"]),
        ("", []),
        (" \n — \n ... ", []),
    ],
)
def test_a_text_is_cut_where_a_reader_would_cut_it(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@given(st.text(alphabet="ab1 .。!?\n\t|-#[]“”，;Ａ猫", max_size=300) | st.text(max_size=200))
def test_every_sentence_is_an_exact_piece_and_nothing_readable_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert all(sentence.text == text[sentence.start : sentence.end] for sentence in sentences)
    assert all(one.end <= two.start for one, two in itertools.pairwise(sentences))
    readable = [character for character in text if character.isalnum()]
    assert [c for sentence in sentences for c in sentence.text if c.isalnum()] == readable


def test_an_endless_sentence_is_cut_to_a_readable_size() -> None:
    sentences = split_sentences("word, " * 2000)
    assert max(len(sentence.text) for sentence in sentences) <= MAX_CHARACTERS


def test_a_long_text_takes_time_in_proportion() -> None:
    assert len(split_sentences("A short one. " * 20_000)) == 20_000
