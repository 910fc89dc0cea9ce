"""Slide a window over the text: so many code points or tokens, each beginning a fixed way before the last one's end."""

import re
from collections.abc import Iterator
from dataclasses import replace

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.graphemes import part_after, part_before
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.port import CountTokens

# A window that uses this share of its tokens is full: each step nearer counts the whole of it again.
_FULL = 0.97
_MOST_COUNTS = 12
_LIKELY_CHARACTERS = 4

_WORD_START = re.compile(r"(?<=\s)\S")


def chunk_by_windows(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield windows as wide as the limits allow, which end anywhere between two characters."""
    limits = chunk_limits(options, count_tokens, window_tokens)
    return to_chunks(extraction, ((piece, ()) for piece in windows(extraction.text, limits)))


def chunk_by_tokens(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield windows of so many tokens, which end between two words where one is near."""
    limits = chunk_limits(replace(options, unit="tokens"), count_tokens, window_tokens)
    return to_chunks(extraction, ((piece, ()) for piece in windows(extraction.text, limits, by_words=True)))


def windows(text: str, limits: ChunkLimits, *, by_words: bool = False) -> Iterator[Piece]:
    """Yield the windows, trimmed; each begins and ends after the one before it, `by_words` where words are near."""
    start, stop = trim(text, 0, len(text))
    end = covered = start
    width = min(limits.characters, _LIKELY_CHARACTERS * limits.tokens)
    while end < stop:
        end, piece = _window(text, start, stop, width, limits, by_words)
        if piece.end <= covered:
            # Nothing new fits beside the overlap.
            end, piece = _window(text, _next_word(text, covered), stop, width, limits, by_words)
        covered = piece.end
        # The next window is likely to be as dense.
        width = min(limits.characters, (piece.end - piece.start) * limits.tokens // max(1, piece.tokens) + 1)
        yield piece
        start = _next_word(text, _overlap_start(text, piece, end, limits, by_words))


def _window(text: str, start: int, stop: int, width: int, limits: ChunkLimits, by_words: bool) -> tuple[int, Piece]:
    """Return where the widest window from `start` ends, and it without white space at its end."""
    end = _fit(text, start, stop, width, limits, by_words)
    first, last = trim(text, start, end)
    return end, Piece(first, last, limits.tokens_of(text[first:last]))


def _fit(text: str, start: int, stop: int, width: int, limits: ChunkLimits, by_words: bool) -> int:
    """Return the end of the widest window from `start`: `width` is a guess, set right by the tokens that it holds."""
    widest = min(stop, start + limits.characters)
    fits, too_far, guess = start, stop + 1, min(widest, start + width)
    for _ in range(_MOST_COUNTS):
        end = guess if guess == stop else _end_before(text, guess, start, by_words)
        if end <= fits:
            break
        tokens = limits.tokens_of(text[start:end].strip())
        if tokens <= limits.tokens:
            fits = end
            if guess == widest or tokens >= _FULL * limits.tokens:
                break
        else:
            too_far = end
        guess = start + max(1, (end - start) * limits.tokens // max(1, tokens))
        if not fits < guess < too_far:
            guess = (fits + too_far) // 2
        guess = min(guess, widest)
    return max(fits, start + 1)


def _overlap_start(text: str, piece: Piece, end: int, limits: ChunkLimits, by_words: bool) -> int:
    """Return where the next window begins: up to the overlap before `end`, above the beginning of this one."""
    overlap = limits.overlap
    if limits.overlap_in_tokens:
        overlap = overlap * (piece.end - piece.start) // max(1, piece.tokens)
    while overlap > 0:
        start = max(piece.start + 1, end - overlap)
        word = _WORD_START.search(text, start, (start + end) // 2) if by_words else None
        start = word.start() if word else part_after(text, start, end)
        if not limits.overlap_in_tokens or limits.tokens_of(text[start:end]) <= limits.overlap:
            return start
        overlap = overlap * 3 // 4
    return end


def _end_before(text: str, place: int, least: int, by_words: bool) -> int:
    """Return where a window ends: after white space in the last quarter if `by_words`, else between characters."""
    if by_words and not text[place].isspace():
        for earlier in range(place, place - (place - least) // 4, -1):
            if text[earlier - 1].isspace():
                return earlier
    return part_before(text, place, least)


def _next_word(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
