from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import UpstreamRejected
from app.inference.embedders.hashed import DIMENSIONS, HashedEmbedder
from app.inference.embedding_cache import CachedEmbedder
from app.telemetry import counters


class Recording(HashedEmbedder):
    """A hashed embedder that remembers what it was asked and refuses the text `bad`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.closed = False

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(list(texts))
        if "bad" in texts:
            raise UpstreamRejected("refused", extra={"index": list(texts).index("bad")})
        return super().embed_passages(texts)

    def close(self) -> None:
        self.closed = True


def cached(max_bytes: int = 1_000_000) -> tuple[CachedEmbedder, Recording]:
    inner = Recording()
    return CachedEmbedder(inner, max_bytes), inner


def test_a_text_is_embedded_once():
    embedder, inner = cached()
    first = embedder.embed_passages(["a", "b"])
    again = embedder.embed_passages(["b", "c", "a"])
    assert inner.asked == [["a", "b"], ["c"]]
    np.testing.assert_array_equal(again[[2, 0]], first)


def test_equal_texts_of_one_call_are_embedded_once():
    embedder, inner = cached()
    vectors = embedder.embed_passages(["a", "b", "a", "a"])
    assert inner.asked == [["a", "b"]]
    np.testing.assert_array_equal(vectors[0], vectors[3])


def test_a_query_is_not_answered_with_a_passages_vector():
    embedder, inner = cached()
    embedder.embed_passages(["a"])
    embedder.embed_queries(["a"])
    assert inner.asked == [["a"], ["a"]]


def test_the_bad_text_is_named_by_its_place_in_the_callers_list():
    embedder, _ = cached()
    embedder.embed_passages(["known"])
    with pytest.raises(UpstreamRejected) as raised:
        embedder.embed_passages(["known", "a", "a", "known", "bad"])
    assert raised.value.extra == {"index": 4}


def test_a_failed_call_leaves_nothing_behind():
    embedder, inner = cached()
    with pytest.raises(UpstreamRejected):
        embedder.embed_passages(["a", "bad"])
    embedder.embed_passages(["a"])
    assert inner.asked[-1] == ["a"]


def test_the_least_recently_used_is_dropped_when_bytes_run_out():
    embedder, inner = cached(max_bytes=2 * (DIMENSIONS * 4 + 400))
    embedder.embed_passages(["a"])
    embedder.embed_passages(["b"])
    embedder.embed_passages(["a"])
    embedder.embed_passages(["c"])
    embedder.embed_passages(["a"])
    assert inner.asked == [["a"], ["b"], ["c"]]
    embedder.embed_passages(["b"])
    assert inner.asked[-1] == ["b"]


def test_without_room_every_call_still_answers():
    embedder, inner = cached(max_bytes=0)
    for _ in range(2):
        assert embedder.embed_passages(["a", "b"]).shape == (2, DIMENSIONS)
    assert inner.asked == [["a", "b"]] * 2


def test_counters_tell_what_reached_the_model():
    embedder, _ = cached()
    before = counters.snapshot()
    embedder.embed_passages(["a", "b", "a"])
    embedder.embed_queries(["a"])
    embedder.embed_passages(["b"])
    after = counters.snapshot()
    names = ("embedding_texts", "embedding_calls", "embedding_cache_hits")
    assert [after[name] - before.get(name, 0) for name in names] == [3, 2, 2]


def test_a_returned_vector_can_be_changed_without_changing_the_cache():
    embedder, _ = cached()
    kept = embedder.embed_passages(["a"]).copy()
    embedder.embed_passages(["a"])[:] = 0
    np.testing.assert_array_equal(embedder.embed_passages(["a"]), kept)


def test_nothing_asked_is_nothing_embedded():
    embedder, inner = cached()
    assert embedder.space.dimensions == DIMENSIONS
    inner.asked.clear()
    assert embedder.embed_passages([]).shape == (0, DIMENSIONS)
    assert inner.asked == []


def test_closing_closes_the_model():
    embedder, inner = cached()
    embedder.close()
    assert inner.closed


def test_threads_get_the_vectors_of_their_own_texts():
    embedder, _ = cached(max_bytes=20_000)
    texts = [[f"{group} {number % 7}" for number in range(20)] for group in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(embedder.embed_passages, texts * 4))
    for asked, vectors in zip(texts * 4, answers, strict=True):
        np.testing.assert_array_equal(vectors, HashedEmbedder().embed_passages(asked))


@given(st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=6), st.integers(0, 8))
def test_the_cache_is_never_seen_in_the_vectors(calls, entries):
    embedder, _ = cached(max_bytes=entries * 2_000)
    for texts in calls:
        if "bad" not in texts:
            np.testing.assert_array_equal(embedder.embed_passages(texts), HashedEmbedder().embed_passages(texts))
