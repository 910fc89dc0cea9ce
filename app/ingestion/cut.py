"""Cut a document's text into chunks that say where they stand. Runs in the process that parses."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter

from app.domain import Chunk, ChunkingOptions, ContextOptions, Extraction
from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.contextualize import HEADINGS, contextualize, reserved_tokens
from app.ingestion.port import CountTokens
from app.ingestion.rows import with_rows


def cut(
    extraction: Extraction,
    title: str,
    options: ChunkingOptions,
    count_tokens: CountTokens,
    window_tokens: int,
    max_chunks: int,
    contexts: ContextOptions = HEADINGS,
) -> tuple[Chunk, ...]:
    """Return at least one chunk; a child's `count_tokens(chunk.indexed_text)` is within the window.

    Raises `EmptyDocument` for a text of white space and `DocumentLimitExceeded` above `max_chunks`.
    """
    strategy = CHUNKERS[options.strategy]
    kept = 0 if strategy.keeps_pieces else reserved_tokens(extraction, title, count_tokens, window_tokens, contexts)
    pieces = strategy.chunk(extraction, options, count_tokens, window_tokens - kept)
    offered = with_contexts(title, pieces, count_tokens, window_tokens, contexts)
    chunks = tuple(islice(with_rows(extraction, offered), max_chunks + 1))
    if not chunks:
        raise EmptyDocument("the document holds no text, only white space")
    if len(chunks) > max_chunks:
        raise DocumentLimitExceeded(
            f"cut by {options.strategy}, the document makes more than {max_chunks} chunks",
            hint="split the document, cut it into larger chunks, or raise FOOTNOTE_MAX_CHUNKS",
        )
    return chunks


def with_contexts(
    title: str,
    pieces: Iterable[Chunk],
    count_tokens: CountTokens,
    window_tokens: int,
    contexts: ContextOptions = HEADINGS,
) -> Iterator[Chunk]:
    """Yield the chunks, the children with their contexts; parents, which are only read, need none."""
    for kind, alike in groupby(pieces, attrgetter("kind")):
        if kind == "child":
            yield from contextualize(title, alike, count_tokens, window_tokens, contexts)
        else:
            yield from alike
