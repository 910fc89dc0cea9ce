import base64
import math
from typing import Any

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable, UpstreamAuthentication, UpstreamRejected
from app.inference.embedders.hashed import HashedEmbedder
from app.inference.embedders.openai_compatible import OpenAICompatibleEmbedder


@pytest.fixture
def embedder(remote):
    def make(**options: Any) -> OpenAICompatibleEmbedder:
        return OpenAICompatibleEmbedder(
            remote(), **({"model": "m", "dimensions": None, "window_tokens": 512, "batch": 64} | options)
        )

    return make


def numbered(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


def expected(texts: list[str]) -> np.ndarray:
    return HashedEmbedder().embed_passages(texts)


def sizes(model_server) -> list[int]:
    return [len(sent.body["input"]) for sent in model_server.sent]


def refusing(model_server, refuses, status=413):
    model_server.respond = lambda sent: (
        model_server.Reply(status) if refuses(sent) else model_server.Reply(body=model_server.embeddings(sent))
    )


def answering(model_server, change):
    def respond(sent):
        body = model_server.embeddings(sent)
        change(body["data"], sent.body["input"])
        return model_server.Reply(body=body)

    model_server.respond = respond


def test_strings_are_sent_and_floats_asked_for_and_dimensions_left_out(embedder, model_server):
    embedder().embed_passages(["a", "b"])
    (sent,) = model_server.sent
    assert sent.path == "/v1/embeddings"
    assert sent.body == {"model": "m", "input": ["a", "b"], "encoding_format": "float"}


def test_dimensions_are_asked_for_where_they_are_set(embedder, model_server):
    embedder(dimensions=384).embed_passages(["a"])
    assert model_server.sent[0].body["dimensions"] == 384


def test_texts_go_in_batches_and_come_back_in_order(embedder, model_server):
    texts = numbered(10)
    np.testing.assert_allclose(embedder(batch=4).embed_passages(texts), expected(texts), atol=1e-6)
    assert sizes(model_server) == [4, 4, 2]


def test_a_body_stays_below_a_megabyte_whatever_the_script(embedder, model_server):
    texts = ["部署" * 50_000, '\n"' * 100_000, "a" * 400_000, "b" * 400_000, "c" * 400_000]
    embedder().embed_passages(texts)
    assert max(sent.body_bytes for sent in model_server.sent) < 1_000_000
    assert sum(sizes(model_server)) == len(texts)


def test_a_text_above_a_megabyte_is_still_tried_alone(embedder, model_server):
    embedder().embed_passages(["a", "b" * 1_200_000, "c"])
    assert sizes(model_server) == [1, 1, 1]


def test_an_answer_in_another_order_is_put_right(embedder, model_server):
    answering(model_server, lambda data, _: data.reverse())
    texts = numbered(5)
    np.testing.assert_allclose(embedder().embed_passages(texts), expected(texts), atol=1e-6)


def test_an_answer_without_numbers_is_taken_in_its_order(embedder, model_server):
    answering(model_server, lambda data, _: [item.pop("index") for item in data])
    texts = numbered(5)
    np.testing.assert_allclose(embedder().embed_passages(texts), expected(texts), atol=1e-6)


def test_base64_is_read_although_floats_were_asked_for(embedder, model_server):
    def encode(data, _):
        for item in data:
            item["embedding"] = base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()

    answering(model_server, encode)
    np.testing.assert_allclose(embedder().embed_passages(["a", "b"]), expected(["a", "b"]), atol=1e-6)


@pytest.mark.parametrize("scale", [1, 1e-200, 1e200])
def test_vectors_are_normalised_here(embedder, model_server, scale):
    answering(model_server, lambda data, _: data[0].update(embedding=[3 * scale, 4 * scale]))
    np.testing.assert_allclose(embedder().embed_queries(["a"]), [[0.6, 0.8]], atol=1e-6)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_server_that_takes_one_text_at_a_time_works_and_its_limit_is_remembered(embedder, model_server, status):
    refusing(model_server, lambda sent: len(sent.body["input"]) > 1, status)
    model, texts = embedder(), numbered(6)
    np.testing.assert_allclose(model.embed_passages(texts), expected(texts), atol=1e-6)
    model_server.sent.clear()
    model.embed_passages(texts)
    assert sizes(model_server) == [1] * 6


def test_a_server_that_embeds_only_the_first_text_of_a_batch_works(embedder, model_server):
    answering(model_server, lambda data, _: data.__delitem__(slice(1, None)))
    texts = numbered(5)
    np.testing.assert_allclose(embedder().embed_passages(texts), expected(texts), atol=1e-6)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_the_one_text_that_is_refused_is_named(embedder, model_server, status):
    refusing(model_server, lambda sent: "text 12" in sent.body["input"], status)
    with pytest.raises(UpstreamRejected) as raised:
        embedder(batch=10).embed_passages(numbered(40))
    assert raised.value.extra == {"index": 12}
    assert str(status) in raised.value.detail


def test_one_bad_text_does_not_shrink_later_batches(embedder, model_server):
    refusing(model_server, lambda sent: "text 3" in sent.body["input"])
    model = embedder()
    with pytest.raises(UpstreamRejected):
        model.embed_passages(numbered(8))
    model_server.sent.clear()
    model.embed_passages([f"other {number}" for number in range(8)])
    assert sizes(model_server) == [8]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([math.nan] * 384, "finite"),
        ([1.0] * 383 + [math.inf], "finite"),
        ([0.0] * 384, "zeros"),
        ([1.0] * 383, "383 dimensions"),
        ([], "zeros"),
        (None, "not a vector"),
        ([[1.0] * 384], "not a vector"),
        (["x"] * 384, "not a vector"),
        ("%%%", "not a vector"),
        (base64.b64encode(b"\0" * 7).decode(), "not a vector"),
        ([1.0] * 383 + [None], "finite"),
    ],
)
def test_the_one_text_whose_vector_is_unusable_is_named(embedder, model_server, value, reason):
    def spoil(data, texts):
        if "text 5" in texts:
            data[texts.index("text 5")]["embedding"] = value

    answering(model_server, spoil)
    with pytest.raises(UpstreamRejected, match=reason) as raised:
        embedder(batch=4).embed_passages(numbered(8))
    assert raised.value.extra == {"index": 5}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": []},
        {"data": [1]},
        {"data": [{"index": 3, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}] * 2},
        {"data": [{"index": [], "embedding": [1.0]}]},
    ],
)
def test_an_answer_of_another_shape_is_rejected(embedder, model_server, body):
    model_server.respond = lambda sent: model_server.Reply(body=body)
    with pytest.raises(UpstreamRejected):
        embedder().embed_passages(["a"])


def test_dimensions_that_differ_from_those_asked_for_are_rejected(embedder, model_server):
    with pytest.raises(UpstreamRejected, match="384 dimensions came back where 256 were due"):
        embedder(dimensions=256).embed_passages(["a"])


def test_dimensions_are_learnt_from_the_first_answer_and_held_against_later_ones(embedder, model_server):
    model = embedder()
    assert model.space.dimensions == 384
    answering(model_server, lambda data, _: data[0].update(embedding=[1.0, 2.0]))
    with pytest.raises(UpstreamRejected, match="2 dimensions"):
        model.embed_passages(["a"])


def test_a_wrong_model_name_is_not_taken_for_a_bad_text(embedder, model_server):
    model_server.respond = lambda sent: model_server.Reply(404)
    with pytest.raises(UpstreamRejected) as raised:
        embedder().embed_passages(numbered(8))
    assert raised.value.extra == {}
    assert len(model_server.sent) == 1


def test_a_refused_key_is_told_as_such(embedder, model_server):
    model_server.respond = lambda sent: model_server.Reply(401)
    with pytest.raises(UpstreamAuthentication):
        embedder().embed_passages(numbered(8))


def test_a_query_gives_up_where_passages_wait(embedder, model_server, clock):
    model_server.script = [model_server.Reply(429, headers={"Retry-After": "40"})]
    with pytest.raises(EmbeddingUnavailable):
        embedder().embed_queries(["a"])
    assert clock.pauses == []
    model_server.script = [model_server.Reply(429, headers={"Retry-After": "40"})]
    assert embedder().embed_passages(["a"]).shape == (1, 384)
    assert clock.pauses == [40]


@pytest.mark.parametrize("method", ["embed_queries", "embed_passages"])
def test_a_server_that_is_down_is_given_up_within_seconds(embedder, model_server, clock, method):
    model_server.respond = lambda sent: None
    with pytest.raises(EmbeddingUnavailable):
        getattr(embedder(), method)(["a"])
    assert 0 < sum(clock.pauses) < 5


def test_a_lone_surrogate_does_not_break_the_request(embedder, model_server):
    embedder().embed_passages(["broken \ud800 text"])
    assert model_server.sent[0].body["input"] == ["broken ? text"]


def test_nothing_is_asked_before_the_first_use(embedder, model_server):
    model = embedder()
    assert (model.window_tokens, model.token_counter.kind) == (512, "estimate")
    assert model_server.sent == []
