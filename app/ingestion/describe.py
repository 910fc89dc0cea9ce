"""Put what a language model writes of chunks before them, in a collection that wants it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.domain import Chunk, Extraction, text_hash
from app.inference.port import Embedder
from app.inference.token_counter import load_token_counter
from app.ingestion.port import CountTokens, JobReport, Prepared
from app.ingestion.written_contexts import UNAVAILABLE, ContextWriter, with_written_context, write_contexts
from app.stores.port import CollectionStore


def describe(
    prepared: Prepared,
    *,
    title: str,
    document_id: str,
    writer: ContextWriter,
    embedder: Embedder,
    store: CollectionStore,
    report: JobReport,
) -> tuple[Prepared, Mapping[str, Any]]:
    """Return the document with what a model wrote of its children, and what that took.

    What it wrote of a chunk before is used again where neither the chunk's text nor the document's title has changed,
    and so is what an interrupted attempt of the same job got.
    """
    children = [chunk for chunk in prepared.chunks if chunk.kind == "child"]
    written = write_contexts(
        children,
        text=prepared.extraction.text,
        title=title,
        known=store.known_contexts(report.job_id, document_id, title),
        writer=writer,
        store=store,
        report=report,
    )
    count_tokens = load_token_counter(embedder.token_counter)
    chunks = (_described(chunk, written.contexts, count_tokens, embedder.window_tokens) for chunk in prepared.chunks)
    extraction = replace(prepared.extraction, warnings=(*prepared.extraction.warnings, *written.warnings))
    return replace(prepared, chunks=tuple(chunks), extraction=extraction), written.cost


def is_incomplete(extraction: Extraction) -> bool:
    """Return whether something is missing that a model may write when it is asked another time."""
    return any(notice.code == UNAVAILABLE and notice.extra["may_pass"] for notice in extraction.warnings)


def _described(chunk: Chunk, contexts: Mapping[bytes, str], count_tokens: CountTokens, window_tokens: int) -> Chunk:
    written = contexts.get(text_hash(chunk.text)) if chunk.kind == "child" else None
    return chunk if written is None else with_written_context(chunk, written, count_tokens, window_tokens)
