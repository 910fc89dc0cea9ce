import unicodedata
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.domain import ChunkingOptions, Extraction, Heading, Page
from app.errors import DocumentLimitExceeded
from app.inference.token_counter import estimate_tokens
from app.ingestion.chunkers.graphemes import can_part
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.contextualize import reserved_tokens
from app.ingestion.cut import with_contexts

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
MIXED = st.lists(FRAGMENTS, max_size=60).map("".join).map(lambda text: unicodedata.normalize("NFC", text))
TEXTS = st.one_of(
    MIXED,
    st.text(max_size=120),
    st.text(alphabet="ab \n#`|-猫\u0301", max_size=200),
).map(lambda text: unicodedata.normalize("NFC", text).replace("\r", "\n"))

OPTIONS = st.builds(
    lambda size, overlap, unit, records, mode, more: ChunkingOptions(
        size=size, overlap=min(overlap, size - 1), unit=unit, records=records, mode=mode, parent_size=size + more
    ),
    size=st.integers(1, 60) | st.integers(61, 2000),
    overlap=st.just(0) | st.integers(0, 50),
    unit=st.sampled_from(["characters", "tokens"]),
    records=st.integers(1, 4),
    mode=st.sampled_from(["paragraph", "heading", "fixed", "document"]),
    more=st.integers(0, 300),
)
WINDOWS = st.integers(16, 64) | st.just(512)
TITLES = st.sampled_from(["", "Handbook", "leave-policy_2026.md", "猫の本", "t" * 300])


def by_words(text: str) -> int:
    return CONTROL_TOKENS + sum(-(-len(word) // 3) if word.isascii() else len(word) for word in text.split())


COUNTERS = st.sampled_from([by_words, estimate_tokens])


@st.composite
def extractions(draw, texts=TEXTS):
    text = draw(texts)
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
        source_type=draw(st.sampled_from(["text", "markdown", "csv", "jsonl", "code"])),
        records=tuple(places) if draw(st.booleans()) else (),
        details={"language": draw(st.sampled_from(["python", "java", "unheard"]))},
        headings=tuple(headings) if draw(st.booleans()) else (),
        pages=tuple(pages) if draw(st.booleans()) else (),
    )


SIZED = {"auto", "recursive", "markdown", "html", "fixed", "tokens", "semantic", "parent_child", "code"}
NOT_OVERLAPPING = {"semantic", "records", "none", "custom"}


class Cutting:
    """One strategy: its options are made sound for a text, and its children are told from its parents."""

    def __init__(self, name):
        self.name = name

    def options(self, extraction, options, count, window):
        options = replace(options, strategy=self.name)
        if self.name == "tokens":
            return replace(options, unit="tokens")
        if self.name == "custom":
            chunks = chunk_recursively(extraction, replace(options, overlap=0), count, window)
            asked = [
                {"text": one.text} if one.ordinal % 2 else {"start": one.start, "end": one.end}
                for one in chunks
                if count(one.text) <= window
            ]
            return replace(options, chunks=asked)
        return options

    def all(self, extraction, options, count, window):
        try:
            return list(CHUNKERS[self.name].chunk(extraction, options, count, window))
        except DocumentLimitExceeded:
            assert self.name == "none"
            assert count(extraction.text.strip()) > window
            return None

    def children(self, extraction, options, count, window):
        chunks = self.all(extraction, options, count, window)
        assume(chunks is not None)
        return [chunk for chunk in chunks if chunk.kind == "child"]


@pytest.fixture(scope="module", params=sorted(CHUNKERS))
def cutting(request) -> Cutting:
    return Cutting(request.param)


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS, count=COUNTERS)
def test_chunks_are_exact_pieces_within_their_limits(cutting, extraction, options, window, count):
    text = extraction.text
    options = cutting.options(extraction, options, count, window)
    chunks = cutting.all(extraction, options, count, window)
    for ordinal, chunk in enumerate(chunks or []):
        assert chunk.ordinal == ordinal
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert chunk.token_count == count(chunk.text) - count("")
        if len(chunk.text) > 1 and chunk.kind == "child":
            assert count(chunk.text) <= window
            if cutting.name in SIZED:
                assert (len(chunk.text) if options.unit == "characters" else chunk.token_count) <= options.size


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS)
def test_nothing_but_white_space_is_left_out(cutting, extraction, options, window):
    options = cutting.options(extraction, options, by_words, window)
    assume(cutting.name != "custom" or window == 512)
    covered = 0
    for chunk in cutting.children(extraction, options, by_words, window):
        assert chunk.start <= covered or not extraction.text[covered : chunk.start].strip()
        covered = max(covered, chunk.end)
    assert not extraction.text[covered:].strip()


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS)
def test_chunks_advance_and_overlap_no_more_than_asked(cutting, extraction, options, window):
    options = cutting.options(extraction, options, by_words, window)
    chunks = cutting.children(extraction, options, by_words, window)
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        if options.overlap == 0 or cutting.name in NOT_OVERLAPPING:
            assert before.end <= after.start
        elif options.unit == "characters":
            assert before.end - after.start <= options.overlap


@LAW
@given(extraction=extractions(MIXED), options=OPTIONS)
def test_no_character_that_a_reader_sees_is_torn_where_it_fits(cutting, extraction, options):
    text = extraction.text
    longest = max((len(part) for part in clusters(text)), default=0)
    size = max(options.size, 4 * longest)
    options = replace(options, size=size, overlap=min(options.overlap, size // 2), parent_size=2 * size)
    options = cutting.options(extraction, options, by_words, 512)
    if cutting.name in ("custom", "html", "markdown", "auto", "records", "semantic", "parent_child"):
        # Their headings and records were put anywhere.
        extraction = replace(extraction, headings=(), records=())
    for chunk in cutting.children(extraction, options, by_words, 512):
        for place in (chunk.start, chunk.end):
            assert can_part(text, place) or text[place - 1].isspace(), (options, chunk.text, place)


def clusters(text):
    places = [place for place in range(len(text) + 1) if can_part(text, place)]
    return [text[start:end] for start, end in pairwise(places)]


@LAW
@given(extraction=extractions(), options=OPTIONS)
def test_a_chunk_names_the_pages_it_touches(cutting, extraction, options):
    for chunk in cutting.children(extraction, cutting.options(extraction, options, by_words, 512), by_words, 512):
        touched = [page.number for page in extraction.pages if page.start < chunk.end and page.end > chunk.start]
        assert (chunk.page_start, chunk.page_end) == ((touched[0], touched[-1]) if touched else (None, None))


@LAW
@given(extraction=extractions(), options=OPTIONS)
def test_a_child_is_read_in_the_parent_around_it(cutting, extraction, options):
    chunks = cutting.all(extraction, cutting.options(extraction, options, by_words, 512), by_words, 512) or []
    kinds = [chunk.kind for chunk in chunks]
    assert kinds == sorted(kinds)
    assert ("parent" in kinds) == (cutting.name == "parent_child" and bool(chunks))
    for child in (chunk for chunk in chunks if chunk.kind == "child" and "parent" in kinds):
        parent = chunks[child.parent]
        assert parent.kind == "parent"
        assert parent.start <= child.start < child.end <= parent.end


@LAW
@given(extraction=extractions(), options=OPTIONS, window=WINDOWS, title=TITLES, count=COUNTERS)
def test_with_its_context_a_chunk_is_still_within_the_window(cutting, extraction, options, window, title, count):
    reserved = reserved_tokens(extraction, title, count, window)
    options = cutting.options(extraction, options, count, window - reserved)
    chunks = cutting.all(extraction, options, count, window - reserved) or []
    for chunk in with_contexts(title, chunks, count, window):
        assert chunk.kind == "parent" or count(chunk.indexed_text) <= window or len(chunk.text) == 1
        assert chunk.indexed_text.endswith(chunk.text)


@pytest.mark.parametrize("text", ["", " \n\u3000\t\n"])
def test_white_space_makes_no_chunk(cutting, text):
    extraction = Extraction(text=text, parser="test", media_type="text/plain", source_type="text")
    assert cutting.all(extraction, ChunkingOptions(), by_words, 512) == []


def test_a_short_text_is_one_chunk(cutting):
    text = "One paragraph.\n\nAnother, 今天讨论了部署方案。"
    extraction = Extraction(text=text, parser="test", media_type="text/plain", source_type="text")
    options = cutting.options(extraction, ChunkingOptions(size=100, overlap=20), by_words, 512)
    chunks = cutting.all(extraction, options, by_words, 512)
    assert [(chunk.start, chunk.end) for chunk in chunks if chunk.kind == "child"] == [(0, len(text))]
