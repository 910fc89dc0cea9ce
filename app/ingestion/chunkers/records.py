"""Keep so many records together: rows of a table, objects of a list."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.chunkers.recursive import cut
from app.ingestion.chunkers.sections import sections
from app.ingestion.port import CountTokens

_LINES = re.compile(r"^.*\S", re.MULTILINE)
_BLOCKS = re.compile(r"(?:\A|\n[^\S\n]*\n)\s*(\S)")


def chunk_by_records(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield `options.records` records a chunk, fewer where they are above the window and at the end of a section.

    What stands before the first record of a section joins it. A text without records is cut at the window.
    """
    limits = chunk_limits(replace(options, unit="tokens", size=window_tokens), count_tokens, window_tokens)
    text, starts = extraction.text, record_starts(extraction)
    return to_chunks(
        extraction,
        (
            (piece, section.heading_path)
            for section in sections(text, extraction.headings)
            for bounds in _groups(section.start, section.end, starts, options.records)
            for piece in _fitting(text, bounds, limits)
        ),
    )


def record_starts(extraction: Extraction) -> Sequence[int]:
    """Return where the loader says that records begin; of a table or list without a word of it, its lines or blocks."""
    if extraction.records:
        return extraction.records
    if extraction.source_type in ("csv", "xlsx"):
        return [match.start() for match in _LINES.finditer(extraction.text)]
    if extraction.source_type in ("json", "jsonl"):
        return [match.start(1) for match in _BLOCKS.finditer(extraction.text)]
    return ()


def _groups(start: int, end: int, starts: Sequence[int], count: int) -> Iterator[list[int]]:
    """Yield the bounds of `count` records at a time; what precedes the first belongs to it."""
    inside = starts[bisect_left(starts, start) : bisect_left(starts, end)]
    bounds = [start, *inside[1:], end]
    for first in range(0, len(bounds) - 1, count):
        yield bounds[first : first + count + 1]


def _fitting(text: str, bounds: list[int], limits: ChunkLimits) -> Iterator[Piece]:
    """Yield the records together where they fit, else in halves; one that alone is above the window is cut."""
    start, end = trim(text, bounds[0], bounds[-1])
    if start == end:
        return
    tokens = limits.measure(text[start:end])
    if tokens is not None:
        yield Piece(start, end, tokens)
    elif len(bounds) == 2:
        yield from cut(text, start, end, limits)
    else:
        middle = len(bounds) // 2
        yield from _fitting(text, bounds[: middle + 1], limits)
        yield from _fitting(text, bounds[middle:], limits)
