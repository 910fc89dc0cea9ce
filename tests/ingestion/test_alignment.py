"""An edit moves no boundary of what it did not touch."""

from hypothesis import given
from hypothesis import strategies as st

from app.ingestion.alignment import KnownPiece, boundaries

PARAGRAPHS = [f"Paragraph {number} says something of its own, {number * 7919 % 1000}.\n\n" for number in range(40)]
SIZE = 60


def known_of(pieces: list[str]) -> list[KnownPiece]:
    found, start = [], 0
    for piece in pieces:
        found.append(KnownPiece.of(start, piece))
        start += len(piece)
    return found


def cut(text: str, places: tuple[int, ...]) -> list[str]:
    ends = [*places, len(text)]
    return [text[start:end] for start, end in zip([0, *places], ends, strict=True)]


def test_a_text_that_did_not_change_is_cut_where_it_was() -> None:
    text = "".join(PARAGRAPHS)
    assert cut(text, boundaries(text, known_of(PARAGRAPHS), SIZE)) == PARAGRAPHS


def test_what_stands_around_a_changed_piece_stays() -> None:
    changed = [*PARAGRAPHS[:20], "Something else altogether stands here now, and it is long. " * 3, *PARAGRAPHS[21:]]
    text = "".join(changed)
    assert cut(text, boundaries(text, known_of(PARAGRAPHS), SIZE)) == changed


def test_pieces_are_found_again_after_several_edits_at_once() -> None:
    changed = ["A new beginning that is longer than before. " * 2, *PARAGRAPHS[:10], *PARAGRAPHS[15:30]]
    changed += ["An insertion of some length in the middle. " * 2, *PARAGRAPHS[31:]]
    text = "".join(changed)
    assert cut(text, boundaries(text, known_of(PARAGRAPHS), SIZE)) == changed


def test_a_few_new_words_are_cut_together_with_the_piece_after_them() -> None:
    text = "".join([*PARAGRAPHS[:20], "Oh.\n\n", *PARAGRAPHS[20:]])
    found = cut(text, boundaries(text, known_of(PARAGRAPHS), SIZE))
    assert found == [*PARAGRAPHS[:20], "Oh.\n\n" + PARAGRAPHS[20], *PARAGRAPHS[21:]]


def test_a_piece_that_only_begins_alike_is_not_taken_for_the_known_one() -> None:
    known = known_of(["The same thirty-two code points begin this one, and so on. ", "The end of it all. "])
    text = "The same thirty-two code points begin that one, which is another. The end of it all. "
    assert boundaries(text, known, 10) == (text.index("The end"),)


@given(
    st.lists(st.text(min_size=1, max_size=30), max_size=12),
    st.lists(st.text(min_size=1, max_size=30), max_size=12),
    st.integers(1, 50),
)
def test_places_are_inside_the_text_sorted_and_distinct(before: list[str], after: list[str], size: int) -> None:
    text = "".join(after)
    places = boundaries(text, known_of(before), size)
    assert list(places) == sorted(set(places))
    assert all(0 < place < len(text) for place in places)


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=12), st.integers(0, 11))
def test_pieces_before_an_edit_are_always_kept(before: list[str], edited: int) -> None:
    edited = min(edited, len(before) - 1)
    text = "".join(before[:edited]) + "#" * 200
    found = cut(text, boundaries(text, known_of(before), 10))
    assert found[:edited] == before[:edited]
