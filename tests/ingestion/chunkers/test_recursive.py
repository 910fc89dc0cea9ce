import time
from itertools import pairwise

import pytest

from app.domain import ChunkingOptions
from app.ingestion.chunkers.recursive import chunk_recursively

WINDOW = 512


@pytest.fixture
def chunk(plain, count_tokens):
    def cut(text, window=WINDOW, pages=(), **options):
        return list(chunk_recursively(plain(text, pages=pages), ChunkingOptions(**options), count_tokens, window))

    return cut


def texts(chunks):
    return [chunk.text for chunk in chunks]


def test_ten_letters_with_overlap_advance_by_three(chunk):
    assert texts(chunk("abcdefghij", size=5, overlap=2)) == ["abcde", "defgh", "ghij"]


def test_ten_letters_without_overlap_are_disjoint(chunk):
    assert texts(chunk("abcdefghij", size=5)) == ["abcde", "fghij"]


def test_the_largest_overlap_advances_by_one(chunk):
    assert texts(chunk("abcdefgh", size=5, overlap=4)) == ["abcde", "bcdef", "cdefg", "defgh"]


def test_an_overlap_begins_with_a_word(chunk):
    words = " ".join(f"word{n:03}" for n in range(100))
    chunks = chunk(words, size=100, overlap=30)
    for before, after in pairwise(chunks):
        assert 8 <= before.end - after.start <= 30
        assert after.text.startswith("word")


def test_a_short_text_is_one_chunk_whatever_the_overlap(chunk):
    text = "Sentence one. Sentence two.\n\nA paragraph of its own."
    assert texts(chunk(text, size=60, overlap=50)) == [text]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t\u3000\n"])
def test_white_space_only_gives_nothing(chunk, text):
    assert chunk(text) == []


def test_the_window_holds_where_the_size_would_not(chunk):
    text = "今天讨论了部署方案。" * 400
    chunks = chunk(text, size=5000)
    assert max(one.token_count for one in chunks) <= WINDOW - 4
    assert "".join(texts(chunks)) == text
    assert min(one.token_count for one in chunks) > WINDOW // 3


def test_one_line_of_chinese_is_cut_after_sentences(chunk):
    text = "我们今天在会议上讨论了新的部署方案！大家都同意吗？是的；没有人反对。" * 5000
    started = time.perf_counter()
    chunks = chunk(text, size=800)
    assert time.perf_counter() - started < 5
    assert {one.text[-1] for one in chunks} <= set("。！？；")


def test_paragraphs_are_preferred_to_sentences_and_sentences_to_words(chunk):
    paragraph = "The first sentence is here. The second sentence is there."
    assert texts(chunk(f"{paragraph}\n\n{paragraph}", size=80)) == [paragraph, paragraph]
    assert texts(chunk(paragraph, size=40)) == ["The first sentence is here.", "The second sentence is there."]


def test_a_scrap_at_the_end_is_shared_with_the_chunk_before(chunk):
    text = " ".join(["sentence"] * 12)
    first, second = texts(chunk(text, size=100))
    assert min(len(first), len(second)) >= 40


def test_a_size_in_tokens_counts_the_text_alone(chunk):
    text = "abc " * 100
    chunks = chunk(text, size=20, unit="tokens")
    assert all(one.token_count <= 20 for one in chunks)
    assert len(chunks) <= 8
    assert all(one.token_count == len(one.text.split()) for one in chunks)


def test_an_overlap_in_tokens_repeats_tokens(chunk):
    chunks = chunk("abc " * 100, size=20, overlap=5, unit="tokens")
    assert all(one.token_count <= 20 for one in chunks)
    repeated = [before.end - after.start for before, after in pairwise(chunks)]
    assert all(4 * 3 <= characters <= 4 * 5 for characters in repeated)


def test_sizes_below_a_token_give_single_characters(chunk):
    assert texts(chunk("猫が", size=1)) == ["猫", "が"]
    assert texts(chunk("猫が", size=2, window=1)) == ["猫", "が"]
    assert texts(chunk("猫が", size=1, unit="tokens")) == ["猫", "が"]


def test_a_long_paragraph_keeps_its_last_sentence(chunk):
    text = "Nothing of interest is said in this sentence of the paragraph. " * 180 + "The code is ZX-81."
    chunks = chunk(text, size=100_000)
    assert chunks[-1].text.endswith("The code is ZX-81.")
    assert all(one.token_count <= WINDOW - 4 for one in chunks)


def test_pages_are_those_the_chunk_touches(chunk):
    text = "First page. " * 5 + "\n" + "Second page. " * 5
    edge = text.index("\n") + 1
    chunks = chunk(text, size=50, pages=[(1, 0, edge), (2, edge, len(text))])
    assert [(one.page_start, one.page_end) for one in (chunks[0], chunks[-1])] == [(1, 1), (2, 2)]
    whole = chunk(text, size=500, pages=[(1, 0, edge), (2, edge, len(text))])
    assert [(one.page_start, one.page_end) for one in whole] == [(1, 2)]
    assert [(one.page_start, one.page_end) for one in chunk(text, size=500)] == [(None, None)]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a b " * 75_000,
        "a\n" * 150_000,
        "👩‍👩‍👧" * 60_000,
        "e" + "\u0301" * 300_000,
        ("a" + " " * 3000) * 100,
    ],
    ids=["letters", "words", "lines", "emoji", "marks", "spaces"],
)
def test_texts_without_any_shape_take_no_longer(chunk, text):
    started = time.perf_counter()
    assert len(chunk(text, size=1600)) >= 100
    assert time.perf_counter() - started < 5


def test_few_tokens_are_counted_twice(plain, count_tokens):
    counted = 0

    def counting(text):
        nonlocal counted
        counted += len(text)
        return count_tokens(text)

    text = "Some words that make a sentence. " * 20_000
    list(chunk_recursively(plain(text), ChunkingOptions(size=1600), counting, WINDOW))
    assert counted < 2 * len(text)
