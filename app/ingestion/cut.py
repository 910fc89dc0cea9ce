"""Cut a document's text into chunks that say where they stand. Runs in the process that parses."""

from itertools import islice

from app.domain import Chunk, ChunkingOptions, Extraction
from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.contextualize import contextualize, reserved_tokens
from app.ingestion.port import CountTokens


def cut(
    extraction: Extraction,
    title: str,
    options: ChunkingOptions,
    count_tokens: CountTokens,
    window_tokens: int,
    max_chunks: int,
) -> tuple[Chunk, ...]:
    """Return at least one chunk; `count_tokens(chunk.indexed_text)` is within the window.

    Raises `EmptyDocument` for a text of white space and `DocumentLimitExceeded` above `max_chunks`.
    """
    reserved = reserved_tokens(extraction, title, count_tokens, window_tokens)
    pieces = CHUNKERS[options.strategy](extraction, options, count_tokens, window_tokens - reserved)
    chunks = tuple(islice(contextualize(title, pieces, count_tokens, window_tokens), max_chunks + 1))
    if not chunks:
        raise EmptyDocument("the document holds no text, only white space")
    if len(chunks) > max_chunks:
        raise DocumentLimitExceeded(
            f"the document makes more than {max_chunks} chunks of {options.size} {options.unit}",
            hint="split the document, cut it into larger chunks, or raise FOOTNOTE_MAX_CHUNKS",
        )
    return chunks
