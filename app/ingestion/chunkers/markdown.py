"""Cut along headings, whatever the format they come from; code blocks and tables of Markdown stay whole if they fit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.domain import Chunk, ChunkingOptions, Extraction, Heading
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.markdown_blocks import Block, spoilable_blocks
from app.ingestion.chunkers.pieces import Piece, overlapping, to_chunks, trim
from app.ingestion.chunkers.recursive import cut, is_tiny
from app.ingestion.chunkers.sections import Section, sections
from app.ingestion.loaders.markdown import headings as markdown_headings
from app.ingestion.port import CountTokens


def chunk_by_headings(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield at least one chunk of every section that holds more than its heading.

    A text that no loader found headings in is read as Markdown.
    """
    headings = extraction.headings or tuple(markdown_headings(extraction.text))
    is_markdown = extraction.source_type == "markdown" or not extraction.headings
    blocks = spoilable_blocks(extraction.text) if is_markdown else []
    limits = chunk_limits(options, count_tokens, window_tokens, extraction.boundaries)
    return _along(extraction, headings, blocks, limits)


def chunk_by_html_headings(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield at least one chunk of every section below a heading that the loader found; nothing is read as Markdown."""
    limits = chunk_limits(options, count_tokens, window_tokens, extraction.boundaries)
    return _along(extraction, extraction.headings, [], limits)


def _along(
    extraction: Extraction, headings: Sequence[Heading], blocks: Sequence[Block], limits: ChunkLimits
) -> Iterator[Chunk]:
    text = extraction.text
    return to_chunks(
        extraction,
        (
            (piece, section.heading_path)
            for section, inside in _with_blocks(sections(text, headings), blocks)
            for piece in _cut_section(text, section, inside, limits)
        ),
    )


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
    """Yield the pieces of the text between blocks and of the blocks; a scrap of text before a block goes with it."""
    for block in blocks:
        lead = _lead(text, start, block, limits)
        yield from cut(text, start, lead, limits)
        yield from (
            _cut_table(text, lead, block, limits) if block.kind == "table" else cut(text, lead, block.end, limits)
        )
        start = block.end
    yield from cut(text, start, end, limits)


def _lead(text: str, start: int, block: Block, limits: ChunkLimits) -> int:
    """Return where a block begins with the scrap of text from `start` to it, if that is one."""
    first, last = trim(text, start, block.start)
    is_scrap = first < last and is_tiny(last - first, limits.capacity(text[first : block.end]))
    return first if is_scrap else block.start


def _cut_table(text: str, lead: int, block: Block, limits: ChunkLimits) -> Iterator[Piece]:
    """Yield the table whole or by rows; rows that are parted from their header have it as context."""
    head_end = text.find("\n", text.find("\n", block.start) + 1)
    header = text[block.start : head_end]
    whole = limits.measure(text[slice(*trim(text, lead, block.end))])
    if whole is not None or head_end < 0 or limits.tokens_of(header) * 2 > limits.tokens:
        yield from cut(text, lead, block.end, limits)
        return
    for piece in cut(text, lead, block.end, limits.beside(header)):
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
