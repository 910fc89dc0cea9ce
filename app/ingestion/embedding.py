"""Give every chunk its vector, asking the model only for texts that the collection does not have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Chunk, text_hash
from app.errors import EmbeddingUnavailable, FootnoteError, UpstreamRejected
from app.inference.port import Embedder
from app.ingestion.port import JobReport
from app.stores.port import CollectionStore

BATCH = 128
"""Texts between two saves: what a killed process embeds again is less than this."""


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """Vectors, float32, one row per chunk, and for how many different chunks the model was asked.

    `content_vectors` are those of the clean texts, where they were wanted.
    """

    vectors: NDArray[np.float32]
    content_vectors: NDArray[np.float32] | None
    embedded: int


@dataclass(frozen=True, slots=True)
class _Text:
    """What of a chunk is embedded: its text with its context, or its clean text alone."""

    chunk: Chunk
    is_clean: bool

    def __str__(self) -> str:
        return self.chunk.text if self.is_clean else self.chunk.indexed_text


def embed_chunks(
    chunks: Sequence[Chunk],
    *,
    store: CollectionStore,
    embedder: Embedder,
    report: JobReport,
    enhanced: bool = False,
    stage: str = "embed",
) -> EmbeddedChunks:
    """Embed the chunks in batches, each saved before the next begins, outside any transaction.

    `enhanced` embeds their clean texts beside.
    """
    hashes = [chunk.text_hash for chunk in chunks]
    clean_hashes = [text_hash(chunk.text) for chunk in chunks] if enhanced else []
    texts = {digest: _Text(chunk, is_clean=True) for digest, chunk in zip(clean_hashes, chunks, strict=False)}
    texts |= {digest: _Text(chunk, is_clean=False) for digest, chunk in zip(hashes, chunks, strict=True)}
    vectors = store.known_vectors(list(texts))
    # Long texts first, so that the model's threads end a batch together.
    missing = sorted(
        (digest for digest in texts if digest not in vectors), key=lambda digest: -texts[digest].chunk.token_count
    )
    reused = len(texts) - len(missing)
    report.stage(stage, total=len(texts), unit="texts" if enhanced else "chunks")
    for begin in range(0, len(missing), BATCH):
        report.advance(reused + begin)
        batch = missing[begin : begin + BATCH]
        rows = _embed_batch(embedder, [texts[digest] for digest in batch])
        fresh = dict(zip(batch, rows, strict=True))
        if len(missing) > BATCH:
            store.stage_vectors(report.job_id, fresh, embedder.space)
        vectors |= fresh
    report.advance(len(texts))
    return EmbeddedChunks(
        _stacked(vectors, hashes),
        _stacked(vectors, clean_hashes) if enhanced else None,
        embedded=len({texts[digest].chunk.ordinal for digest in missing}),
    )


def _stacked(vectors: Mapping[bytes, NDArray[np.float32]], hashes: Sequence[bytes]) -> NDArray[np.float32]:
    return np.stack([vectors[digest] for digest in hashes]).astype(np.float32, copy=False)


def _embed_batch(embedder: Embedder, batch: Sequence[_Text]) -> NDArray[np.float32]:
    try:
        return embedder.embed_passages([str(text) for text in batch])
    except (EmbeddingUnavailable, UpstreamRejected) as error:
        _name_chunk(error, batch)
        raise


def _name_chunk(error: FootnoteError, batch: Sequence[_Text]) -> None:
    """Turn the place in a batch into the chunk's ordinal and offsets, which the caller can look up."""
    index = error.extra.pop("index", None)
    if isinstance(index, int):
        chunk = batch[index].chunk
        error.extra["chunk"] = {"ordinal": chunk.ordinal, "start": chunk.start, "end": chunk.end}
