"""Cut along the headings where there are any, else without."""

from collections.abc import Iterator

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.markdown import chunk_by_headings
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.port import CountTokens


def chunk_automatically(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of the strategy that suits the document."""
    has_structure = bool(extraction.headings) or extraction.source_type == "markdown"
    chunker = chunk_by_headings if has_structure else chunk_recursively
    return chunker(extraction, options, count_tokens, window_tokens)
