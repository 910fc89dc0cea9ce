"""Cut at the highest boundary that fits: blank lines, line ends, sentences (also 。！？), words, graphemes."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice

from semantic_text_splitter import TextSplitter

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.graphemes import can_part, part_before
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, overlapping, to_chunks, trim
from app.ingestion.port import CountTokens

# The splitter's time grows with the square of a text that has no line ends, so it is given a few chunks at a time.
_CHUNKS_IN_A_BLOCK = 8
_SHORTEST_BLOCK = 1_000

# A last piece below this share of what fits is a scrap.
_SCRAP = 4

# A piece below this share of what fits says too little by itself: most often it is a heading.
_TINY = 16


def chunk_recursively(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of a text without regard to its headings."""
    limits = chunk_limits(options, count_tokens, window_tokens, extraction.boundaries)
    text = extraction.text
    return to_chunks(extraction, ((piece, ()) for piece in cut_with_overlap(text, 0, len(text), limits)))


def cut_with_overlap(text: str, start: int, end: int, limits: ChunkLimits) -> Iterator[Piece]:
    """Yield a piece as long as fits, then pieces that begin inside the one before as far as the limits say."""
    if limits.overlap == 0:
        yield from cut(text, start, end, limits)
        return
    for first in islice(cut(text, start, end, limits), 1):
        following = cut(text, first.end, end, limits.without_overlap())
        yield from overlapping(text, chain([first], following), limits)


def cut(text: str, start: int, end: int, limits: ChunkLimits) -> Iterator[Piece]:
    """Yield disjoint pieces of `[start, end)` in order: all but white space, each within the limits.

    A single code point is a piece even if its tokens are more than the limits allow.
    """
    start, end = trim(text, start, end)
    if start == end:
        return
    tokens = limits.measure(text[start:end])
    if tokens is None and end - start == 1:
        tokens = limits.tokens_of(text[start:end])
    if tokens is not None:
        yield Piece(start, end, tokens)
        return
    parts = limits.parts(start, end)
    for first, last in parts if len(parts) > 1 else _spans(text, start, end, limits):
        yield from cut(text, first, last, limits)


def _spans(text: str, start: int, end: int, limits: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Yield places that are shorter than `[start, end)` and probably within the limits."""
    # What is cut for its tokens must get shorter even where a sample of it says that it fits.
    longest = limits.characters if end - start > limits.characters else max(1, (end - start) * 9 // 10)
    while start < end:
        near = text[start : min(end, start + max(_SHORTEST_BLOCK, 2 * limits.characters))]
        capacity = min(limits.capacity(near), longest)
        stop = min(end, start + max(_SHORTEST_BLOCK, _CHUNKS_IN_A_BLOCK * capacity))
        spans = _split(text, start, stop, (capacity, capacity))
        filled = _with_next(text, spans, capacity)
        if filled is not spans:
            yield from filled
            start = filled[-1][1]
            continue
        if stop == end:
            yield from _without_scrap(text, spans, capacity)
            return
        # The block's end is arbitrary, so what stands before it is cut again with what follows.
        start = spans.pop()[0] if len(spans) > 1 else stop if not spans else spans[0][1]
        yield from spans


def _without_scrap(text: str, spans: list[tuple[int, int]], capacity: int) -> list[tuple[int, int]]:
    """Share the last two spans evenly where the last one is a scrap."""
    if len(spans) < 2 or _length(spans[-1]) * _SCRAP >= capacity:
        return spans
    start, end = spans[-2][0], spans[-1][1]
    shared = _split(text, start, end, (min(capacity, (end - start) // 2), capacity))
    return [*spans[:-2], *shared] if _length(shared[-1]) > _length(spans[-1]) else spans


def is_tiny(length: int, capacity: int) -> bool:
    """Return whether so many code points are too few for a chunk of their own beside what follows them."""
    return length * _TINY <= capacity


def _with_next(text: str, spans: list[tuple[int, int]], capacity: int) -> list[tuple[int, int]]:
    """Return the spans up to the first tiny one, and this one with as much of the next one as fits beside it."""
    for place, (start, end) in enumerate(spans[:-1]):
        following = spans[place + 1]
        lead = following[0] - start
        if is_tiny(end - start, capacity) and lead * 2 <= capacity:
            first = _split(text, *following, (capacity - lead, capacity - lead))[0]
            return [*spans[:place], (start, first[1])]
    return spans


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _split(text: str, start: int, end: int, capacity: tuple[int, int]) -> list[tuple[int, int]]:
    found = _splitter(capacity).chunk_indices(text[start:end])
    spans = (trim(text, start + offset, start + offset + len(chunk)) for offset, chunk in found)
    return _untorn(text, [span for span in spans if span[0] < span[1]])


def _untorn(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Move an end that tears a character, as the splitter does to fill a span, to the place before it."""
    for place in range(1, len(spans)):
        (first, end), (start, last) = spans[place - 1 : place + 1]
        if end == start and not can_part(text, start):
            start = part_before(text, start, first)
            spans[place - 1 : place + 1] = [trim(text, first, start), (start, last)]
    return spans


@lru_cache(maxsize=64)
def _splitter(capacity: tuple[int, int]) -> TextSplitter:
    return TextSplitter(capacity)
