"""Cut along headings, whatever the format they come from; code blocks and tables of Markdown stay whole if they fit."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from app.domain import Chunk, ChunkingOptions, Extraction, Heading
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.markdown_blocks import Block, spoilable_blocks
from app.ingestion.chunkers.pieces import Piece, overlapping, to_chunks, trim
from app.ingestion.chunkers.recursive import cut
from app.ingestion.loaders.markdown import headings as markdown_headings
from app.ingestion.port import CountTokens

_UNDERLINE = re.compile(r"[=\-\s]*")


@dataclass(frozen=True, slots=True)
class Section:
    """The place `[start, end)` that a heading rules, itself included, and the titles from the root to it."""

    heading_path: tuple[str, ...]
    start: int
    end: int


def chunk_by_headings(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield at least one chunk of every section that holds more than its heading.

    A text that no loader found headings in is read as Markdown.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    text = extraction.text
    is_markdown = extraction.source_type == "markdown" or not extraction.headings
    headings = extraction.headings or tuple(markdown_headings(text))
    blocks = spoilable_blocks(text) if is_markdown else []
    return to_chunks(
        extraction,
        (
            (piece, section.heading_path)
            for section, inside in _with_blocks(sections(text, headings), blocks)
            for piece in _cut_section(text, section, inside, limits)
        ),
    )


def sections(text: str, headings: Sequence[Heading]) -> Iterator[Section]:
    """Yield the text before the first heading, and what each heading rules; a heading alone joins what follows it."""
    ordered = sorted(headings, key=lambda heading: heading.start)
    path: list[Heading] = []
    start = 0
    ends = [*(heading.start for heading in ordered), len(text)]
    if ends[0] > 0:
        yield Section((), 0, ends[0])
        start = ends[0]
    for heading, end in zip(ordered, ends[1:], strict=True):
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        if end < len(text) and _stands_alone(text, heading, end):
            continue
        yield Section(tuple(each.title for each in path), start, end)
        start = end


def _stands_alone(text: str, heading: Heading, end: int) -> bool:
    """Return whether nothing but its title, and perhaps a line drawn under it, is between a heading and `end`."""
    longest = heading.start + 2 * len(heading.title) + 100
    first_line, _, rest = text[heading.start : min(end, longest)].strip().partition("\n")
    return end <= longest and len(first_line) <= 2 * len(heading.title) + 20 and bool(_UNDERLINE.fullmatch(rest))


def _with_blocks(found: Iterable[Section], blocks: Sequence[Block]) -> Iterator[tuple[Section, list[Block]]]:
    """Pair each section with the blocks that lie inside it; both are in the order of the text."""
    place = 0
    for section in found:
        first = place
        while place < len(blocks) and blocks[place].start < section.end:
            place += 1
        # A loader may find a heading where the parser of blocks, which knows tables, finds none.
        yield section, [b for b in blocks[first:place] if section.start <= b.start and b.end <= section.end]


def _cut_section(text: str, section: Section, blocks: Sequence[Block], limits: ChunkLimits) -> Iterator[Piece]:
    start, end = trim(text, section.start, section.end)
    if start == end:
        return
    tokens = limits.measure(text[start:end])
    if tokens is not None:
        yield Piece(start, end, tokens)
        return
    narrow = limits.without_overlap()
    yield from overlapping(text, _joined(text, _cut_around(text, start, end, blocks, narrow), narrow), limits)


def _cut_around(text: str, start: int, end: int, blocks: Sequence[Block], limits: ChunkLimits) -> Iterator[Piece]:
    """Yield the pieces of the text between blocks and of the blocks."""
    for block in blocks:
        yield from cut(text, start, block.start, limits)
        yield from (
            _cut_table(text, block, limits) if block.kind == "table" else cut(text, block.start, block.end, limits)
        )
        start = block.end
    yield from cut(text, start, end, limits)


def _cut_table(text: str, block: Block, limits: ChunkLimits) -> Iterator[Piece]:
    """Yield the table whole or by rows; rows that are parted from their header have it as context."""
    head_end = text.find("\n", text.find("\n", block.start) + 1)
    header = text[block.start : head_end]
    whole = limits.measure(text[slice(*trim(text, block.start, block.end))])
    if whole is not None or head_end < 0 or limits.tokens_of(header) * 2 > limits.tokens:
        yield from cut(text, block.start, block.end, limits)
        return
    for piece in cut(text, block.start, block.end, limits.beside(header)):
        yield replace(piece, context=header) if piece.start >= head_end else piece


def _joined(text: str, pieces: Iterable[Piece], limits: ChunkLimits) -> Iterator[Piece]:
    """Join neighbours while both fit into one: a sentence stays with the table or the code that it announces."""
    held: Piece | None = None
    for piece in pieces:
        if held is None:
            held = piece
            continue
        room = limits.beside(held.context) if held.context else limits
        tokens = None if piece.context else room.measure(text[held.start : piece.end])
        if tokens is None:
            yield held
            held = piece
        else:
            held = replace(held, end=piece.end, tokens=tokens)
    if held is not None:
        yield held
