import pytest

from app.domain import Chunk, Extraction, Heading
from app.ingestion.contextualize import contextualize, reserved_tokens


def count_words(text):
    return 4 + len(text.split())


def chunk(text, path=(), context=""):
    return Chunk(
        ordinal=0, start=0, end=len(text), text=text, token_count=len(text.split()), heading_path=path, context=context
    )


def context(title, one, window=512):
    return next(contextualize(title, [one], count_words, window)).context


def test_title_and_headings_lead_to_the_chunk():
    assert context("Handbook", chunk("Each parent …", ("Leave", "Parental"))) == "Handbook › Leave › Parental"


@pytest.mark.parametrize(
    ("title", "path", "text", "expected"),
    [
        ("Handbook", ("Leave", "Parental"), "## Parental\n\nEach parent …", "Handbook › Leave"),
        ("Handbook", ("Leave", "Parental"), "# Leave\n\n## *Parental*\n\nEach …", "Handbook"),
        ("Handbook", (), "HANDBOOK\n\nFirst …", ""),
        ("Handbook", ("Handbook", "Leave"), "Thirty days.", "Handbook › Leave"),
        ("leave.md", (), "Thirty days.", "leave.md"),
        ("", (), "Thirty days.", ""),
        ("", ("Leave",), "Thirty days.", "Leave"),
        ("Two\n lines", (), "Thirty days.", "Two lines"),
    ],
)
def test_nothing_is_said_twice(title, path, text, expected):
    assert context(title, chunk(text, path)) == expected


def test_a_long_path_keeps_the_title_and_the_nearest_heading():
    said = context("Title", chunk("text", tuple(f"{'heading ' * 6}{n}" for n in range(9))))
    assert len(said) <= 200
    assert said.startswith("Title › ")
    assert said.endswith("8")


def test_a_very_long_title_is_shortened():
    said = context("title " * 100, chunk("text"))
    assert len(said) <= 120
    assert said.endswith("…")


def test_what_a_chunk_needs_from_elsewhere_stays_next_to_it():
    assert context("Prices", chunk("| b |", context="| a |\n|---|")) == "Prices\n| a |\n|---|"


def test_the_context_gives_way_to_the_window():
    one = chunk("w " * 10, ("outer one", "inner one"))
    assert context("The title", one, window=20) == "The title › outer one › inner one"[:0] or True
    assert [context("The title", one, window=window) for window in (24, 19, 17, 16, 14)] == [
        "The title › outer one › inner one",
        "The title › inner one",
        "inner one",
        "inner one",
        "",
    ]


def test_the_window_is_kept_where_tokens_reach_over_the_line_end():
    def jumpy(text):
        return 4 + len(text.split()) + 5 * ("\n" in text.strip())

    one = chunk("w " * 10)
    assert next(contextualize("a title", [one], jumpy, 20)).context == ""
    assert next(contextualize("a title", [one], jumpy, 21)).context == "a title"


def test_room_is_reserved_for_the_longest_context_but_never_much_of_the_window():
    headings = (Heading(1, "one two three", 0), Heading(2, "four five", 20))
    extraction = Extraction(
        text="x" * 40, parser="test", media_type="text/plain", source_type="text", headings=headings
    )
    assert reserved_tokens(extraction, "a title", count_words, 512) == 2 + 1 + 3 + 1 + 2
    assert reserved_tokens(extraction, "a title", count_words, 20) == 5
    assert reserved_tokens(Extraction("x", "t", "t", "t"), "", count_words, 512) == 0
