"""Places of chunks in a text: trimmed, overlapping, and made into chunks."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.domain import Chunk, Extraction, pages_of
from app.ingestion.chunkers.graphemes import can_part
from app.ingestion.chunkers.limits import ChunkLimits

_WORD_START = re.compile(r"(?<=\s)\S")


@dataclass(frozen=True, slots=True)
class Piece:
    """The place `[start, end)` of a chunk and its tokens; `context` is what its text needs from elsewhere."""

    start: int
    end: int
    tokens: int
    context: str = ""


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place without the white space at its ends; empty when there is nothing else."""
    piece = text[start:end]
    start = end - len(piece.lstrip())
    return start, start + len(piece.strip())


def overlapping(text: str, pieces: Iterable[Piece], limits: ChunkLimits) -> Iterator[Piece]:
    """Let each piece begin up to `limits.overlap` earlier, inside the piece before it and within the limits."""
    before: Piece | None = None
    for piece in pieces:
        before = piece if before is None or limits.overlap == 0 else _begun_earlier(text, before, piece, limits)
        yield before


def _begun_earlier(text: str, before: Piece, piece: Piece, limits: ChunkLimits) -> Piece:
    overlap = limits.overlap
    if limits.overlap_in_tokens:
        overlap = overlap * (piece.end - piece.start) // max(1, piece.tokens)
    while overlap > 0:
        start = _overlap_start(text, before, max(before.end - overlap, piece.end - limits.characters))
        if start >= before.end:
            break
        tokens = limits.measure(text[start : piece.end])
        if tokens is not None:
            return replace(piece, start=start, tokens=tokens)
        overlap //= 2
    return piece


def _overlap_start(text: str, before: Piece, start: int) -> int:
    """Return the beginning of a word where one begins soon after `start`, never the middle of a grapheme."""
    start = max(before.start + 1, start)
    word = _WORD_START.search(text, start, (start + before.end) // 2)
    start = word.start() if word else start
    while start < before.end and (text[start].isspace() or not can_part(text, start)):
        start += 1
    return start


def to_chunks(
    extraction: Extraction, pieces: Iterable[tuple[Piece, tuple[str, ...]]], first_ordinal: int = 0
) -> Iterator[Chunk]:
    """Yield the chunk of each piece and heading path, by ordinal, with its pages."""
    for ordinal, (piece, heading_path) in enumerate(pieces, first_ordinal):
        page_start, page_end = pages_of(extraction.pages, piece.start, piece.end)
        yield Chunk(
            ordinal=ordinal,
            start=piece.start,
            end=piece.end,
            text=extraction.text[piece.start : piece.end],
            token_count=piece.tokens,
            context=piece.context,
            heading_path=heading_path,
            page_start=page_start,
            page_end=page_end,
        )
