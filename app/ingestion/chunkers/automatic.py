"""Cut code by its grammar, other texts along the headings where there are any, else without."""

from collections.abc import Iterator

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.code import chunk_code
from app.ingestion.chunkers.markdown import chunk_by_headings
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.port import CountTokens


def chunk_automatically(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of the strategy that suits the document."""
    if extraction.source_type == "code":
        return chunk_code(extraction, options, count_tokens, window_tokens)
    has_structure = bool(extraction.headings) or extraction.source_type == "markdown"
    chunker = chunk_by_headings if has_structure else chunk_recursively
    return chunker(extraction, options, count_tokens, window_tokens)
