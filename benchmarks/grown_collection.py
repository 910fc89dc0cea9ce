"""A collection of any size for measurements: real texts, and vectors grown from real ones by mixing pairs.

Everything is streamed: a million passages never stand in memory together.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from app.domain import Chunk
from app.embedding_space import EmbeddingSpace
from app.indexes.opening import OpenCollection
from app.inference.port import TokenCounterSpec
from app.stores.prepared import PreparedDocument

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
QUESTION_SETS = ("xquad_en", "nomiracl_zh", "nomiracl_en", "dureader_robust", "scifact", "xquad_zh")
FIELD = "slot"
"""Metadata of each document: a number from 0 to 99, so that `slot lt p` lets p % of them through."""

Number = TypeVar("Number", int, NDArray[np.int64])

_BATCH = 20_000


def slot_of(document: Number) -> Number:
    """Return the value of `FIELD` in the document of this number, or in each of several."""
    return document * 37 % 100


def grown_batches(seeds: NDArray[np.float16], count: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield unit vectors, each a mix of two of the seeds: like real ones in what quantisation meets."""
    random = np.random.default_rng(seed)
    for first in range(0, count, _BATCH):
        size = min(_BATCH, count - first)
        share = random.random((size, 1), dtype=np.float32)
        one, other = random.integers(0, len(seeds), (2, size))
        some: NDArray[np.float32] = share * seeds[one] + (1 - share) * seeds[other]
        some /= np.linalg.norm(some, axis=1, keepdims=True)
        yield some


def grown(seeds: NDArray[np.float16], count: int, seed: int) -> NDArray[np.float32]:
    """Return the vectors of `grown_batches` as one array."""
    return np.concatenate(list(grown_batches(seeds, count, seed)))


@dataclass(frozen=True, slots=True)
class GrownDocument:
    """One document: its number, the texts of its chunks, and a vector for each."""

    number: int
    texts: list[str]
    vectors: NDArray[np.float32]


def grown_passages(chunks: int) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors of the first chunks, in batches and in their order."""
    return grown_batches(np.load(DATA / "e5_vectors.npz")["passages"], chunks, seed=1)


def grown_documents(chunks: int, chunks_per_document: int) -> Iterator[GrownDocument]:
    """Yield documents of that many chunks each, the last one perhaps of fewer."""
    texts = _texts(chunks)
    rest = np.empty((0, GrownQueries.space.dimensions), np.float32)
    number = 0
    for batch in grown_passages(chunks):
        rest = np.concatenate([rest, batch])
        while len(rest) >= chunks_per_document:
            yield GrownDocument(number, list(islice(texts, chunks_per_document)), rest[:chunks_per_document])
            rest, number = rest[chunks_per_document:], number + 1
    if len(rest):
        yield GrownDocument(number, list(texts), rest)


class GrownQueries:
    """Stand for the embedder: each question has a grown vector of its own, and no model is asked."""

    space = EmbeddingSpace("benchmark", "grown", 384, (1.0,) + (0.0,) * 383)
    window_tokens = 512
    token_counter = TokenCounterSpec("estimate")

    def __init__(self, count: int) -> None:
        self.texts = questions(count)
        seeds = np.load(DATA / "e5_vectors.npz")["queries"]
        self._vectors = dict(zip(self.texts, grown(seeds, count, seed=2), strict=True))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the questions' vectors."""
        return np.stack([self._vectors[text] for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise NotImplementedError("passages have their vectors already")

    def close(self) -> None:
        """Do nothing."""


def questions(count: int) -> list[str]:
    """Return distinct real questions of several sets, English and Chinese in turn."""
    sets = []
    for name in QUESTION_SETS:
        lines = (DATA / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        sets.append([json.loads(line)["text"] for line in lines])
    mixed = dict.fromkeys(text for row in zip(*sets, strict=False) for text in row)
    if len(mixed) < count:
        raise SystemExit(f"there are {len(mixed)} questions, not {count}")
    return list(mixed)[:count]


def fill(opened: OpenCollection, chunks: int, chunks_per_document: int) -> None:
    """Write documents of that many chunks each into an empty collection."""
    fill_with(opened, grown_documents(chunks, chunks_per_document))


def fill_with(opened: OpenCollection, documents: Iterable[GrownDocument]) -> None:
    """Write documents into an empty collection."""
    opened.store.set_embedding_space(GrownQueries.space)
    for document in documents:
        _put(opened, document.number, document.texts, document.vectors)


def _texts(count: int) -> Iterator[str]:
    made = 0
    while made < count:
        with gzip.open(DATA / "scale_120k.jsonl.gz", "rt", encoding="utf-8") as lines:
            # Above 120,000 the same texts come again.
            for line in islice(lines, count - made):
                made += 1
                yield json.loads(line)["text"]


def _put(opened: OpenCollection, number: int, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
    document_id = f"document-{number}"
    metadata = {FIELD: slot_of(number)}
    registration = opened.store.register_document(
        document_id, title=document_id, metadata=metadata, media_type="text/plain", filename=None
    )
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        chunks.append(Chunk(ordinal, start, start + len(text), text, len(text) // 4))
        start += len(text) + 1
    whole = "\n".join(texts)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    opened.store.replace_document(
        PreparedDocument(
            id=document_id,
            registration=registration,
            etag=digest,
            title=document_id,
            metadata=metadata,
            source_type="text",
            media_type="text/plain",
            filename=None,
            content_hash=digest,
            settings_hash="",
            text=whole,
            pages=(),
            extraction={},
            warnings=(),
            expires_at=None,
            chunks=chunks,
            vectors=vectors,
        )
    )
