import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import ChunkingOptions, Extraction, Heading, Page
from app.inference.token_counter import estimate_tokens
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.contextualize import contextualize, reserved_tokens
from app.ingestion.port import Chunker

CONTROL_TOKENS = 4

LAW = settings(deadline=None)

FRAGMENTS = st.sampled_from(
    [
        *(
            "word ",
            "Another sentence. ",
            "today we met! ",
            "supercalifragilistic",
            "x",
            " ",
            "\n",
            "\n\n",
            "\t",
            "\u3000",
        ),
        *("今天讨论了部署方案。", "猫", "東京タワーは高い！", "한글 ", "שָׁלוֹם ", "مُحَمَّد ", "हिन्दी ", "ไทย"),
        *("👩‍👩‍👧", "🇫🇮", "👍🏽", "e\u0301", "\u200b", "\u00ad", "\x1c", "a" * 40, "\u0301" * 5),
        *(
            "# Title\n",
            "\n## Deeper one\n\n",
            "\nUnder\n-----\n",
            "```\n",
            "    code\n",
            "\n| a | b |\n|---|---|\n| c | d |\n",
        ),
        *("- item\n", "> quoted\n", "<div>\n", "| more | rows |\n", "\n***\n"),
    ]
)
TEXTS = st.one_of(
    st.lists(FRAGMENTS, max_size=60).map("".join),
    st.text(max_size=120),
    st.text(alphabet="ab \n#`|-猫\u0301", max_size=200),
).map(lambda text: unicodedata.normalize("NFC", text).replace("\r", "\n"))

OPTIONS = st.builds(
    lambda size, overlap, unit: ChunkingOptions(size=size, overlap=min(overlap, size - 1), unit=unit),
    size=st.integers(1, 60) | st.integers(61, 2000),
    overlap=st.just(0) | st.integers(0, 50),
    unit=st.sampled_from(["characters", "tokens"]),
)
WINDOWS = st.integers(16, 64) | st.just(512)
TITLES = st.sampled_from(["", "Handbook", "leave-policy_2026.md", "猫の本", "t" * 300])


def by_words(text: str) -> int:
    return CONTROL_TOKENS + sum(-(-len(word) // 3) if word.isascii() else len(word) for word in text.split())


COUNTERS = st.sampled_from([by_words, estimate_tokens])


@st.composite
def extractions(draw):
    text = draw(TEXTS)
    places = sorted(set(draw(st.lists(st.integers(0, max(0, len(text) - 1)), max_size=6))))
    pages = [
        Page(number, start, end)
        for number, (start, end) in enumerate(zip([0, *places], [*places, len(text)], strict=True), start=1)
    ]
    levels = draw(st.lists(st.integers(1, 6), min_size=len(places), max_size=len(places)))
    headings = [
        Heading(level, text[start : start + 12].strip() or "untitled", start)
        for level, start in zip(levels, places, strict=True)
    ]
    return Extraction(
        text=text,
        parser="test",
        media_type="text/plain",
        source_type=draw(st.sampled_from(["text", "markdown"])),
        headings=tuple(headings) if draw(st.booleans()) else (),
        pages=tuple(pages) if draw(st.booleans()) else (),
    )


@pytest.fixture(scope="module", params=sorted(CHUNKERS))
def chunker(request) -> Chunker:
    return CHUNKERS[request.param]


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS, count=COUNTERS)
def test_chunks_are_exact_pieces_within_their_limits(chunker, extraction, options, window, count):
    text = extraction.text
    chunks = list(chunker(extraction, options, count, window))
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert chunk.token_count == count(chunk.text) - count("")
        if len(chunk.text) > 1:
            assert count(chunk.text) <= window
            assert (len(chunk.text) if options.unit == "characters" else chunk.token_count) <= options.size


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS)
def test_nothing_but_white_space_is_left_out(chunker, extraction, options, window):
    covered = 0
    for chunk in chunker(extraction, options, by_words, window):
        assert chunk.start <= covered or not extraction.text[covered : chunk.start].strip()
        covered = max(covered, chunk.end)
    assert not extraction.text[covered:].strip()


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS)
def test_chunks_advance_and_overlap_no_more_than_asked(chunker, extraction, options, window):
    chunks = list(chunker(extraction, options, by_words, window))
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        if options.overlap == 0:
            assert before.end <= after.start
        elif options.unit == "characters":
            assert before.end - after.start <= options.overlap


@LAW
@given(extraction=extractions(), options=OPTIONS)
def test_a_chunk_names_the_pages_it_touches(chunker, extraction, options):
    for chunk in chunker(extraction, options, by_words, 512):
        touched = [page.number for page in extraction.pages if page.start < chunk.end and page.end > chunk.start]
        assert (chunk.page_start, chunk.page_end) == ((touched[0], touched[-1]) if touched else (None, None))


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS, title=TITLES, count=COUNTERS)
def test_with_its_context_a_chunk_is_still_within_the_window(chunker, extraction, options, window, title, count):
    reserved = reserved_tokens(extraction, title, count, window)
    chunks = chunker(extraction, options, count, window - reserved)
    for chunk in contextualize(title, chunks, count, window):
        assert count(chunk.indexed_text) <= window or len(chunk.text) == 1
        assert chunk.indexed_text.endswith(chunk.text)


@pytest.mark.parametrize("text", ["", " \n\u3000\t\n"])
def test_white_space_makes_no_chunk(chunker, text):
    extraction = Extraction(text=text, parser="test", media_type="text/plain", source_type="text")
    assert list(chunker(extraction, ChunkingOptions(), by_words, 512)) == []


def test_a_short_text_is_one_chunk(chunker):
    text = "One paragraph.\n\nAnother, 今天讨论了部署方案。"
    extraction = Extraction(text=text, parser="test", media_type="text/plain", source_type="text")
    chunks = list(chunker(extraction, ChunkingOptions(size=100, overlap=20), by_words, 512))
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, len(text))]
