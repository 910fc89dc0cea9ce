"""Cut small children to be found and larger parents to be read."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.chunkers.recursive import cut, cut_with_overlap
from app.ingestion.chunkers.sections import Section, sections
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
    limits = chunk_limits(options, count_tokens, window_tokens)
    parents = list(_parents(extraction, options, limits))
    children = [
        (piece, section.heading_path, place)
        for place, (parent, section) in enumerate(parents)
        for piece in cut_with_overlap(extraction.text, parent.start, parent.end, limits)
    ]
    found = to_chunks(extraction, ((piece, path) for piece, path, _ in children))
    read = to_chunks(extraction, ((parent, section.heading_path) for parent, section in parents), len(children))
    return chain(
        (replace(one, parent=len(children) + place) for one, (_, _, place) in zip(found, children, strict=True)),
        (replace(one, kind="parent") for one in read),
    )


def _parents(
    extraction: Extraction, options: ChunkingOptions, children: ChunkLimits
) -> Iterator[tuple[Piece, Section]]:
    """Yield parents in order, with the section that each begins in; parents need not fit the model's window."""
    text = extraction.text
    limits = replace(children, characters=options.parent_size, tokens=_UNLIMITED_TOKENS, overlap=0)
    start, end = trim(text, 0, len(text))
    if start == end:
        return
    found = list(sections(text, extraction.headings or tuple(markdown_headings(text))))
    if options.mode == "document" or children.measure(text[start:end]) is not None:
        yield Piece(start, end, limits.tokens_of(text[start:end])), Section((), start, end)
        return
    for section in found:
        for first, last in _spans(text, section, options, children):
            for piece in cut(text, first, last, limits):
                yield piece, section


def _spans(text: str, section: Section, options: ChunkingOptions, children: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Yield what the mode says is one parent, however long."""
    if options.mode != "paragraph":
        yield section.start, section.end
        return
    start = section.start
    for gap in _BLANK_LINES.finditer(text, section.start, section.end):
        if (gap.start() - start) * _SCRAP >= children.characters:
            yield start, gap.start()
            start = gap.end()
    yield start, section.end
