from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.indexes.analysis import Analyzer
from app.inference.port import TokenVectors
from app.inference.rerankers.late_interaction import LateInteractionReranker
from app.inference.rerankers.vocabulary import Vocabulary

_analyzer = Analyzer()


class Letters:
    """An embedder whose tokens are words of one letter, each with a direction of its own."""

    window_tokens = 100

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_query_tokens(self, text: str) -> TokenVectors:
        pieces = [f" {word}" for word in text.split()]
        vectors = np.array([np.eye(26)[ord(piece[1]) - ord("a")] for piece in pieces], np.float32)
        return TokenVectors(vectors.reshape(len(pieces), 26), pieces)

    embed_passage_tokens = embed_query_tokens


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def scores(pool: ThreadPoolExecutor, weights: dict[str, float], query: str, texts: list[str]) -> list[float]:
    vocabulary = Vocabulary(weights, _analyzer.terms, _analyzer.terms_with_offsets)
    return LateInteractionReranker(Letters(), vocabulary, pool).scores(query, texts, timeout_seconds=30).tolist()


def test_each_token_of_the_query_counts_by_the_weight_of_its_term(pool):
    rare, common = scores(pool, {"x": 9.0, "y": 1.0}, "x y", ["x b c", "y b c"])
    meaning_of_rare = 0.9
    assert rare > common
    assert rare == pytest.approx((meaning_of_rare + 0.1 * 0.9 / 2.2) / 1.1, abs=1e-5)


def test_a_token_of_no_term_does_not_count(pool):
    with_it, without = scores(pool, {"x": 2.0}, "x y", ["x y", "x z"])
    assert with_it == without


def test_all_tokens_count_where_no_term_says_anything(pool):
    both, one, none = scores(pool, {}, "x y", ["x y", "x z", "z z"])
    assert both > one > none


def test_a_text_or_a_query_without_tokens_is_scored(pool):
    assert len(scores(pool, {}, "", ["x", ""])) == 2
    full, empty = scores(pool, {"x": 1.0}, "x", ["x", ""])
    assert full > empty


@pytest.mark.model
def test_the_embedded_model_s_tokens_are_unit_vectors_of_the_text_alone(model_folder):
    from app.inference.registry import create_embedder
    from app.settings import Settings

    embedder = create_embedder("local", Settings(models=model_folder))
    for text in ("Parental leave lasts 320 days.", "病假超过三天", ""):
        for tokens in (embedder.embed_query_tokens(text), embedder.embed_passage_tokens(text)):
            assert "".join(tokens.pieces).strip() == text
            assert tokens.vectors.shape == (len(tokens.pieces), 384)
            np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-5)
    embedder.close()
