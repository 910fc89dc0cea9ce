"""Leave a text whole."""

from collections.abc import Iterator

from app.domain import Chunk, ChunkingOptions, Extraction
from app.errors import DocumentLimitExceeded
from app.ingestion.chunkers.limits import chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks, trim
from app.ingestion.port import CountTokens


def leave_whole(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield one chunk; raises `DocumentLimitExceeded` for a text that the model cannot read whole."""
    start, end = trim(extraction.text, 0, len(extraction.text))
    if start == end:
        return
    limits = chunk_limits(options, count_tokens, window_tokens)
    tokens = limits.tokens_of(extraction.text[start:end])
    if tokens + limits.control_tokens > window_tokens and end - start > 1:
        raise DocumentLimitExceeded(
            f"the text is one chunk of {tokens} tokens, and the model reads {window_tokens - limits.control_tokens}",
            code="chunk_above_window",
            hint="choose another chunking strategy than none",
        )
    yield from to_chunks(extraction, [(Piece(start, end, tokens), ())])
