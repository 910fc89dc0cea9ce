from itertools import pairwise

import pytest

from app.domain import ChunkingOptions
from app.ingestion.chunkers.windows import chunk_by_tokens, chunk_by_windows

WINDOW = 512


@pytest.fixture
def fixed(plain, count_tokens):
    def cut(text, window=WINDOW, **options):
        return list(chunk_by_windows(plain(text), ChunkingOptions(**options), count_tokens, window))

    return cut


@pytest.fixture
def tokens(plain, count_tokens):
    def cut(text, window=WINDOW, **options):
        return list(chunk_by_tokens(plain(text), ChunkingOptions(**options), count_tokens, window))

    return cut


def test_windows_slide_by_their_size_less_the_overlap(fixed):
    places = [(one.start, one.end) for one in fixed("abcdefghij", size=5, overlap=2)]
    assert places == [(0, 5), (3, 8), (6, 10)]


def test_without_overlap_windows_are_disjoint(fixed):
    assert [one.text for one in fixed("abcdefghij", size=4)] == ["abcd", "efgh", "ij"]


def test_white_space_at_the_ends_of_a_window_is_left_out(fixed):
    assert [one.text for one in fixed("abc  def", size=4)] == ["abc", "def"]


@pytest.mark.parametrize("character", ["👩‍👩‍👧", "🇫🇮", "👍🏽", "नि", "각"])
def test_a_window_ends_between_two_characters(fixed, character):
    text = character * 9
    for one in fixed(text, size=2 * len(character) + 1):
        assert one.text == character * (len(one.text) // len(character))


def test_a_window_obeys_the_model_too(fixed, count_tokens):
    chunks = fixed("今天讨论了部署方案" * 100, size=5000, window=100)
    assert all(count_tokens(one.text) <= 100 for one in chunks)
    assert sum(len(one.text) for one in chunks) == 900


def test_tokens_fill_each_window_and_end_between_words(tokens):
    text = " ".join(f"word{n}" for n in range(1000))
    chunks = tokens(text, size=50)
    assert all(45 <= one.token_count <= 50 for one in chunks[:-1])
    assert all(word in text.split() for one in chunks for word in one.text.split())


def test_tokens_overlap_by_tokens_at_most(tokens, count_tokens):
    text = " ".join(f"word{n}" for n in range(500))
    chunks = tokens(text, size=50, overlap=10)
    for before, after in pairwise(chunks):
        assert 0 < count_tokens(text[after.start : before.end]) - 4 <= 10
        assert text[after.start - 1] == " "
