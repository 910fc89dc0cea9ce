"""Give every chunk its vector, asking the model only for texts that the collection does not have."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Chunk
from app.errors import EmbeddingUnavailable, FootnoteError, UpstreamRejected
from app.inference.port import Embedder
from app.ingestion.port import JobReport
from app.stores.port import CollectionStore

BATCH = 128
"""Chunks between two saves: what a killed process embeds again is less than this."""


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """Vectors, float32, one row per chunk, and how many of them the model was asked for."""

    vectors: NDArray[np.float32]
    embedded: int


def embed_chunks(
    chunks: Sequence[Chunk], *, store: CollectionStore, embedder: Embedder, report: JobReport
) -> EmbeddedChunks:
    """Embed the chunks in batches, each saved before the next begins, outside any transaction."""
    hashes = [chunk.text_hash for chunk in chunks]
    vectors = store.known_vectors(list(dict.fromkeys(hashes)))
    missing = {digest: i for i, digest in enumerate(hashes) if digest not in vectors}
    # Long texts first, so that the model's threads end a batch together.
    order = sorted(missing.values(), key=lambda i: -chunks[i].token_count)
    reused = len(chunks) - len(order)
    report.stage("embed", total=len(chunks), unit="chunks")
    for begin in range(0, len(order), BATCH):
        report.advance(reused + begin)
        batch = order[begin : begin + BATCH]
        rows = _embed_batch(embedder, chunks, batch)
        fresh = {hashes[i]: row for i, row in zip(batch, rows, strict=True)}
        if len(order) > BATCH:
            store.stage_vectors(report.job_id, fresh)
        vectors |= fresh
    report.advance(len(chunks))
    matrix = np.stack([vectors[digest] for digest in hashes]).astype(np.float32, copy=False)
    return EmbeddedChunks(matrix, embedded=len(order))


def _embed_batch(embedder: Embedder, chunks: Sequence[Chunk], batch: Sequence[int]) -> NDArray[np.float32]:
    try:
        return embedder.embed_passages([chunks[i].indexed_text for i in batch])
    except (EmbeddingUnavailable, UpstreamRejected) as error:
        _name_chunk(error, chunks, batch)
        raise


def _name_chunk(error: FootnoteError, chunks: Sequence[Chunk], batch: Sequence[int]) -> None:
    """Turn the place in a batch into the chunk's ordinal and offsets, which the caller can look up."""
    index = error.extra.pop("index", None)
    if isinstance(index, int):
        chunk = chunks[batch[index]]
        error.extra["chunk"] = {"ordinal": chunk.ordinal, "start": chunk.start, "end": chunk.end}
