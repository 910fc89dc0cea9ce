"""Take the chunks that the caller cut."""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from app.domain import Chunk, ChunkingOptions, Extraction
from app.errors import FieldError, InvalidRequest
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks
from app.ingestion.chunkers.sections import path_of, sections
from app.ingestion.loaders.canonical import canonical
from app.ingestion.port import CountTokens


def take_chunks(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of `options.chunks`, each `{start, end}` or `{text}` of the canonical text, in order.

    A chunk's metadata is its context. Raises `InvalidRequest` that points at the first one that overlaps another, is
    out of range, not found, empty, or above the model's window.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    return to_chunks(extraction, _placed(extraction, options, limits, window_tokens))


def _placed(
    extraction: Extraction, options: ChunkingOptions, limits: ChunkLimits, window_tokens: int
) -> Iterator[tuple[Piece, tuple[str, ...]]]:
    text = extraction.text
    found = list(sections(text, extraction.headings))
    covered = 0
    for place, asked in enumerate(options.chunks):
        start, end = _place(text, asked, covered, place)
        tokens = limits.tokens_of(text[start:end])
        if tokens + limits.control_tokens > window_tokens:
            refuse(place, "", "too_large", f"has {tokens} tokens; the model reads {window_tokens}")
        yield Piece(start, end, tokens, _context(asked)), path_of(found, start, end)
        covered = end


def _place(text: str, asked: Mapping[str, Any], covered: int, place: int) -> tuple[int, int]:
    wanted = asked.get("text")
    if wanted is not None:
        wanted = canonical(wanted)[0].strip()
        start = text.find(wanted, covered)
        if not wanted or start < 0:
            refuse(place, "text", "not_found", "does not stand in the document's text after the chunk before")
        return start, start + len(wanted)
    start, end = asked["start"], asked["end"]
    if end > len(text):
        refuse(place, "end", "out_of_range", f"is {end} and the text has {len(text)} characters")
    if start < covered:
        refuse(place, "start", "overlapping", f"is {start}, inside the chunk before, which ends at {covered}")
    if not text[start:end].strip():
        refuse(place, "start", "empty", f"begins a chunk that holds no text, from {start} to {end}")
    return start, end


def _context(asked: Mapping[str, Any]) -> str:
    metadata = asked.get("metadata") or {}
    return "\n".join(f"{name}: {value}" for name, value in metadata.items())


def refuse(place: int, member: str, code: str, detail: str, pointer: str = "/chunking/chunks") -> NoReturn:
    """Raise `InvalidRequest` for the chunk at `place`."""
    field = f"{pointer}/{place}/{member}".rstrip("/")
    raise InvalidRequest(f"{field} {detail}", errors=[FieldError(field, code, detail)])
