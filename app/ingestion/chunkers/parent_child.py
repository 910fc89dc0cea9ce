"""Cut small children to be found and larger parents to be read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.chunkers.recursive import cut, cut_with_overlap
from app.ingestion.chunkers.sections import Section, path_of, sections
from app.ingestion.loaders.markdown import headings as markdown_headings
from app.ingestion.port import CountTokens

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_UNLIMITED_TOKENS = 2**53

# A paragraph below this share of a child is no parent: it joins the one after it.
_SCRAP = 4


def chunk_parents_and_children(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the children, then the parents that cover the text. No child is in two parents."""
    text, limits = extraction.text, chunk_limits(options, count_tokens, window_tokens, extraction.boundaries)
    found = list(sections(text, extraction.headings or tuple(markdown_headings(text))))
    parents = list(_parents(text, found, options, limits))
    children = [
        (piece, place)
        for place, parent in enumerate(parents)
        for piece in cut_with_overlap(text, parent.start, parent.end, limits)
    ]

    def with_path(piece: Piece) -> tuple[Piece, tuple[str, ...]]:
        return piece, path_of(found, piece.start, piece.end)

    to_find = to_chunks(extraction, (with_path(piece) for piece, _ in children))
    to_read = to_chunks(extraction, map(with_path, parents), len(children))
    return chain(
        (replace(one, parent=len(children) + place) for one, (_, place) in zip(to_find, children, strict=True)),
        (replace(one, kind="parent") for one in to_read),
    )


def _parents(text: str, found: Sequence[Section], options: ChunkingOptions, children: ChunkLimits) -> Iterator[Piece]:
    """Yield parents in order, which need not fit the model's window; a short text is one."""
    limits = replace(children, characters=options.parent_size, tokens=_UNLIMITED_TOKENS, overlap=0, boundaries=())
    start, end = trim(text, 0, len(text))
    if start == end:
        return
    if options.mode == "document" or children.measure(text[start:end]) is not None:
        yield Piece(start, end, limits.tokens_of(text[start:end]))
        return
    for first, last in _spans(text, found, options.mode, children):
        yield from cut(text, first, last, limits)


def _spans(text: str, found: Sequence[Section], mode: str, children: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Yield what the mode says is one parent, however long."""
    if mode == "fixed":
        yield 0, len(text)
        return
    for section in found:
        start = section.start
        for gap in _BLANK_LINES.finditer(text, section.start, section.end) if mode == "paragraph" else ():
            if (gap.start() - start) * _SCRAP >= children.characters:
                yield start, gap.start()
                start = gap.end()
        yield start, section.end
