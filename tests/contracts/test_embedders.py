"""What every registered embedder does."""

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from app.embedding_space import same_space
from app.inference.port import Embedder
from app.inference.registry import EMBEDDERS, create_embedder
from app.inference.token_counter import load_token_counter
from app.settings import Settings

TEXTS = ["Each parent may take 320 days.", "今天讨论了部署方案", "", " ", "a\x00b", "👨‍👩‍👧", "x" * 5_000, "a"]


@pytest.fixture(params=sorted(EMBEDDERS))
def embedder(request: pytest.FixtureRequest, model_server: Any) -> Iterator[Embedder]:
    options: dict[str, Any] = {"embedding_model": "served", "embedding_base_url": model_server.url}
    if request.param == "local":
        options["models"] = request.getfixturevalue("model_folder")
    made = create_embedder(request.param, Settings(**options))
    yield made
    made.close()


@pytest.mark.parametrize("method", ["embed_queries", "embed_passages"])
def test_each_text_gets_one_unit_vector_of_float32(embedder, method):
    vectors = getattr(embedder, method)(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.space.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("method", ["embed_queries", "embed_passages"])
def test_no_text_gives_no_vector(embedder, method):
    assert getattr(embedder, method)([]).shape == (0, embedder.space.dimensions)


def test_a_text_has_the_same_vector_alone_and_among_others(embedder):
    together = embedder.embed_passages(TEXTS)
    alone = np.concatenate([embedder.embed_passages([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_the_space_is_told_by_a_unit_fingerprint_that_stays(embedder):
    space = embedder.space
    assert len(space.fingerprint) == space.dimensions
    assert np.linalg.norm(space.fingerprint) == pytest.approx(1, abs=1e-5)
    assert embedder.space == space
    assert same_space(space, embedder.space)


def test_its_tokens_can_be_counted_in_another_process(embedder):
    spec = pickle.loads(pickle.dumps(embedder.token_counter))
    count = load_token_counter(spec)
    assert 0 < count("") < count("one two three") < count("one two three " * 50)
    assert count("one two three") <= embedder.window_tokens


def test_threads_share_it(embedder):
    expected = embedder.embed_passages(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(embedder.embed_passages, [TEXTS] * 8):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)
