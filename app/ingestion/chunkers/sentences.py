"""Find the sentences of a text, in any script, and give the meaning-aware chunker pieces to join."""

import re
from collections.abc import Iterator

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.chunkers.recursive import cut
from app.ingestion.chunkers.sections import path_of, sections
from app.ingestion.port import CountTokens

# After a full stop and its closing marks there is white space; after one of a script without spaces nothing need be.
_ENDS = re.compile(r"[.!?…؟।]+[\"'”’»)\]]*(?=\s)|[。！？；｡]+[”’」』）】》\"']*|\n\s*\n|\n(?=\s*(?:[-*•·]|\d+[.)])\s)")

# What is shorter says too little to be compared: an abbreviation, a number, "Yes."
_SHORTEST = 24


def chunk_by_sentences(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield each sentence, or the whole text where it is short; `ingestion/group.py` joins what belongs together.

    To compare sentences takes a model, which the process that parses does not have.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    text, found = extraction.text, list(sections(extraction.text, extraction.headings))
    start, end = trim(text, 0, len(text))
    tokens = limits.measure(text[start:end])
    if start < end and tokens is not None:
        return to_chunks(extraction, [(Piece(start, end, tokens), path_of(found, start, end))])
    return to_chunks(
        extraction,
        (
            (piece, section.heading_path)
            for section in found
            for piece in sentences(text, section.start, section.end, limits)
        ),
    )


def sentences(text: str, start: int, end: int, limits: ChunkLimits) -> Iterator[Piece]:
    """Yield the sentences of `[start, end)` as pieces within the limits; a very short one joins what follows it."""
    for match in _ENDS.finditer(text, start, end):
        first, last = trim(text, start, match.end())
        if last - first >= _SHORTEST:
            yield from cut(text, first, last, limits)
            start = match.end()
    yield from cut(text, start, end, limits)
