"""Say of each chunk of a sheet which of its rows it holds, so that a reader finds them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.domain import Chunk, Extraction


def with_rows(extraction: Extraction, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks, those that hold rows of a sheet with them at the end of their heading path.

    This is for the reader: what is embedded and indexed does not change when a row above is added.
    """
    if not extraction.record_numbers:
        yield from chunks
        return
    for chunk in chunks:
        rows = _rows(extraction, chunk)
        yield replace(chunk, heading_path=(*chunk.heading_path, rows)) if rows else chunk


def _rows(extraction: Extraction, chunk: Chunk) -> str | None:
    first, end = (bisect_left(extraction.records, place) for place in (chunk.start, chunk.end))
    if first == end:
        # A long row may be cut; a row is a line, so the chunk is inside one where no line ends before it.
        if first == 0 or "\n" in extraction.text[extraction.records[first - 1] : chunk.start]:
            return None
        first -= 1
    one, other = extraction.record_numbers[first], extraction.record_numbers[end - 1]
    return f"row {one}" if one == other else f"rows {one}-{other}"
