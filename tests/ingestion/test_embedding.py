import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from app.domain import Chunk
from app.embedding_space import EmbeddingSpace
from app.errors import Cancelled, UpstreamRejected
from app.inference.embedders.hashed import HashedEmbedder
from app.ingestion.embedding import BATCH, embed_chunks


class Kept:
    """Remembers what was staged, as a store does."""

    def __init__(self) -> None:
        self.vectors: dict[bytes, np.ndarray] = {}

    def known_vectors(self, hashes: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        return {digest: self.vectors[digest] for digest in hashes if digest in self.vectors}

    def stage_vectors(self, _job_id: str, vectors: dict[bytes, np.ndarray], _space: object = None) -> None:
        self.vectors |= vectors


class Report:
    """Counts what it is told and can cancel after a number of chunks."""

    job_id = "job_1"

    def __init__(self, cancel_at: int | None = None) -> None:
        self.done: list[int] = []
        self._cancel_at = cancel_at

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        self.total = total

    def advance(self, done: int) -> None:
        self.done.append(done)
        if self._cancel_at is not None and done >= self._cancel_at:
            raise Cancelled("cancelled")


class Counting(HashedEmbedder):
    """Counts the texts it embeds, and refuses one that holds a word."""

    def __init__(self, refuse: str | None = None) -> None:
        super().__init__()
        self.embedded = 0
        self._refuse = refuse

    @property
    def space(self) -> EmbeddingSpace:
        """Return the space without counting its fingerprint."""
        return HashedEmbedder().space

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        for index, text in enumerate(texts):
            if self._refuse and self._refuse in text:
                raise UpstreamRejected("one text is refused", extra={"index": index})
        self.embedded += len(texts)
        return super().embed_passages(texts)


def chunks(count: int) -> list[Chunk]:
    return [Chunk(i, i * 10, i * 10 + 8, f"text {i:03d}", token_count=i % 7) for i in range(count)]


def test_each_chunk_gets_the_vector_of_its_own_text() -> None:
    embedder = Counting()
    made = embed_chunks(chunks(300), store=Kept(), embedder=embedder, report=Report())
    expected = HashedEmbedder().embed_passages([chunk.indexed_text for chunk in chunks(300)])
    np.testing.assert_allclose(made.vectors, expected)
    assert (made.embedded, embedder.embedded) == (300, 300)


def test_known_and_repeated_texts_are_not_embedded_again() -> None:
    store, embedder = Kept(), Counting()
    known = chunks(1)[0]
    store.vectors[hashlib.sha256(known.indexed_text.encode()).digest()] = np.ones(384, np.float32)
    twins = [Chunk(i, i, i + 4, "twin", 1) for i in range(1, 4)]
    made = embed_chunks([known, *twins], store=store, embedder=embedder, report=Report())
    assert embedder.embedded == 1
    assert made.embedded == 1
    np.testing.assert_array_equal(made.vectors[0], np.ones(384, np.float32))
    np.testing.assert_array_equal(made.vectors[1], made.vectors[3])


def test_a_job_that_starts_again_goes_on_from_its_last_batch() -> None:
    store = Kept()
    first = Counting()
    with pytest.raises(Cancelled):
        embed_chunks(chunks(400), store=store, embedder=first, report=Report(cancel_at=2 * BATCH))
    second = Counting()
    embed_chunks(chunks(400), store=store, embedder=second, report=Report())
    assert first.embedded == 2 * BATCH
    assert second.embedded == 400 - 2 * BATCH


def test_progress_ends_at_the_total() -> None:
    report = Report()
    embed_chunks(chunks(300), store=Kept(), embedder=Counting(), report=report)
    assert report.done == sorted(report.done)
    assert report.done[-1] == report.total == 300


def test_a_refused_text_is_named_by_its_chunk() -> None:
    with pytest.raises(UpstreamRejected) as caught:
        embed_chunks(chunks(40), store=Kept(), embedder=Counting(refuse="text 012"), report=Report())
    assert caught.value.extra == {"chunk": {"ordinal": 12, "start": 120, "end": 128}}


def test_enhanced_embeds_clean_texts_beside_those_with_a_context_and_none_twice() -> None:
    store, embedder = Kept(), Counting()
    pieces = [Chunk(0, 0, 3, "one", 1, context="T"), Chunk(1, 3, 6, "two", 1), Chunk(2, 6, 9, "one", 1, context="T")]
    report = Report()
    made = embed_chunks(pieces, store=store, embedder=embedder, report=report, enhanced=True)
    expected = HashedEmbedder().embed_passages(["T\none", "two", "one"])
    np.testing.assert_allclose(made.vectors, expected[[0, 1, 0]])
    np.testing.assert_allclose(made.content_vectors, expected[[2, 1, 2]])
    assert (embedder.embedded, made.embedded, report.total) == (3, 2, 3)
