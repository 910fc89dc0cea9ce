"""Show what a chunker makes of a text or of a stored document; nothing is written."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from app.catalog.collections import Collection
from app.domain import Chunk, ChunkingOptions, ChunkKind, Document
from app.errors import InvalidRequest, NotFound
from app.inference.port import Embedder
from app.ingestion.group import join_sentences
from app.ingestion.ingest import Ingestion
from app.ingestion.port import LoadLimits, Prepared, PrepareRequest
from app.ingestion.submission import context_options, normalisation_options
from app.ingestion.work import load_limits
from app.settings import Settings

PATIENCE_SECONDS = 5.0
"""How long a preview waits for another one."""

LONGEST_SECONDS = 30.0
MOST_PAGES_RECOGNISED = 2
"""Somebody waits for the answer: a document that takes longer is better put in."""

MOST_SENTENCES = 2000
"""More are not embedded only to be looked at."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A document as it would be, and how many sentences were embedded to cut it."""

    prepared: Prepared
    sentences_embedded: int

    def of_kind(self, kind: ChunkKind) -> list[Chunk]:
        """Return the chunks of one kind."""
        return [chunk for chunk in self.prepared.chunks if chunk.kind == kind]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The least, the median and the greatest of some sizes."""

    min: int
    median: int
    max: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> "Sizes":
        """Return those of at least one size."""
        return cls(min(sizes), median_low(sizes), max(sizes))


def preview_text(
    ingestion: Ingestion,
    text: str,
    media_type: str,
    *,
    title: str | None,
    collection: Collection | None,
    chunking: ChunkingOptions,
    embedder: Embedder,
) -> Preview:
    """Return what a text would become, in a collection if one is given."""
    with tempfile.NamedTemporaryFile(prefix="preview-", dir=ingestion.spool) as file:
        file.write(text.encode("utf-8", "surrogatepass"))
        file.flush()
        request = PrepareRequest(
            path=Path(file.name),
            declared=f"{media_type}; charset=utf-8",
            filename=None,
            password=None,
            title=title,
            chunking=chunking,
            token_counter=embedder.token_counter,
            window_tokens=embedder.window_tokens,
            limits=_limits(ingestion.settings),
        )
        return _preview(ingestion, request, collection, embedder)


def preview_document(
    ingestion: Ingestion, collection: Collection, document: Document, chunking: ChunkingOptions, embedder: Embedder
) -> Preview:
    """Return what the original of a document's present version would become; raises `NotFound` without one."""
    if document.content_hash is None:
        raise NotFound(f"the document {document.id!r} has no ready version yet", hint="wait for its job")
    extraction = document.extraction or {}
    request = PrepareRequest(
        path=ingestion.originals(collection.id).path(document.content_hash),
        declared=extraction.get("declared_media_type"),
        filename=document.filename,
        password=None,
        title=extraction.get("given_title"),
        chunking=chunking,
        token_counter=embedder.token_counter,
        window_tokens=embedder.window_tokens,
        limits=_limits(ingestion.settings),
    )
    return _preview(ingestion, request, collection, embedder)


def _limits(settings: Settings) -> LoadLimits:
    limits = load_limits(settings)
    return replace(
        limits,
        parse_timeout_seconds=min(limits.parse_timeout_seconds, LONGEST_SECONDS),
        max_ocr_pages=min(limits.max_ocr_pages, MOST_PAGES_RECOGNISED),
        ocr_page_seconds=min(limits.ocr_page_seconds, LONGEST_SECONDS),
    )


def _preview(
    ingestion: Ingestion, request: PrepareRequest, collection: Collection | None, embedder: Embedder
) -> Preview:
    embedded = 0

    def embed(sentences: Sequence[Chunk]) -> NDArray[np.float32]:
        nonlocal embedded
        if len(sentences) > MOST_SENTENCES:
            raise InvalidRequest(
                f"the text has {len(sentences)} sentences; a preview compares at most {MOST_SENTENCES}",
                hint="preview a part of the text",
            )
        embedded = len(sentences)
        return embedder.embed_passages([sentence.text for sentence in sentences])

    if collection is not None:
        request = replace(
            request,
            normalisation=normalisation_options(collection),
            contexts=context_options(collection, ingestion.settings),
        )
    prepared = join_sentences(ingestion.previewers.prepare(request), request, embed)
    return Preview(prepared, embedded)
