import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from app.errors import InvalidRequest, Misconfigured, RerankUnavailable
from app.indexes.analysis import Analyzer
from app.inference import reranker_registry
from app.inference.reranker_registry import Asked, Rerankers
from app.inference.rerankers.cross_encoder import CrossEncoderReranker
from app.inference.rerankers.cross_encoder_files import cross_encoder_files
from app.inference.rerankers.vocabulary import Vocabulary
from app.settings import Settings

QUERY, TEXT = "parental leave days", "each parent may take thirty days"


def made(folder: Path) -> CrossEncoderReranker:
    return CrossEncoderReranker(lambda: cross_encoder_files(folder, folder / "models"), threads=1)


def score(folder: Path) -> float:
    return float(made(folder).scores(QUERY, [TEXT], timeout_seconds=30)[0])


def with_logits(folder: Path, target: Path, values: list[float]) -> Path:
    """Copy the folder with a graph that always gives these logits."""
    shutil.copytree(folder, target)
    logits = helper.make_tensor("logits", TensorProto.FLOAT, [1, len(values)], values)
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["out"], value=logits)],
        "constant",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "t"])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, len(values)])],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), target / "model.onnx")
    return target


def test_one_logit_becomes_a_probability(cross_encoder_folder):
    assert score(cross_encoder_folder) == pytest.approx(1 / (1 + np.exp(-(1 - 1))))  # one shared word, less one


@pytest.mark.parametrize(
    ("logits", "probability"), [([0.0], 0.5), ([1.0, 3.0], 0.8808), ([-800.0], 0.0), ([800.0], 1.0)]
)
def test_logits_of_any_size_become_probabilities(cross_encoder_folder, tmp_path, logits, probability):
    assert score(with_logits(cross_encoder_folder, tmp_path / "m", logits)) == pytest.approx(probability, abs=1e-4)


@pytest.mark.parametrize("logits", [[float("nan")], [1.0, 2.0, 3.0]])
def test_logits_that_say_nothing_are_unavailable(cross_encoder_folder, tmp_path, logits):
    with pytest.raises(RerankUnavailable):
        score(with_logits(cross_encoder_folder, tmp_path / "m", logits))


def test_a_folder_as_model_repositories_have_it_is_read(cross_encoder_folder, tmp_path):
    shutil.copytree(cross_encoder_folder, tmp_path / "m")
    (tmp_path / "m" / "onnx").mkdir()
    (tmp_path / "m" / "model.onnx").rename(tmp_path / "m" / "onnx" / "model.onnx")
    assert score(tmp_path / "m") == score(cross_encoder_folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_file_or_with_nonsense_is_refused(cross_encoder_folder, tmp_path, name):
    shutil.copytree(cross_encoder_folder, tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(b"nonsense")
    with pytest.raises(RerankUnavailable, match="cannot be loaded"):
        score(tmp_path / "m")
    (tmp_path / "m" / name).unlink()
    with pytest.raises(Misconfigured, match="lacks"):
        score(tmp_path / "m")


def test_a_name_needs_the_extra_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", None)
    with pytest.raises(Misconfigured, match=r"footnote\[fastembed\]"):
        cross_encoder_files(Path("owner/some-model"), tmp_path)


def test_without_the_tokenizer_s_package_the_extra_is_named(cross_encoder_folder, monkeypatch):
    monkeypatch.setattr(reranker_registry, "find_spec", lambda _: None)
    analyzer = Analyzer()
    rerankers = Rerankers(Settings(cross_encoder=cross_encoder_folder), None)
    with pytest.raises(InvalidRequest) as raised:
        rerankers.get("cross_encoder", Asked(Vocabulary({}, analyzer.terms, analyzer.terms_with_offsets)))
    assert "footnote[fastembed]" in f"{raised.value.detail} {raised.value.hint}"
    rerankers.close()


def test_a_pair_above_the_window_is_scored_in_part_and_logged(cross_encoder_folder, caplog):
    made(cross_encoder_folder).scores(QUERY, ["leave " * 600], timeout_seconds=30)
    assert "above the cross-encoder's window" in caplog.text


def test_the_model_is_loaded_once_and_at_first_use(cross_encoder_folder):
    calls: list[Any] = []

    def find() -> Any:
        calls.append(None)
        return cross_encoder_files(cross_encoder_folder, cross_encoder_folder)

    reranker = CrossEncoderReranker(find, threads=1)
    assert calls == []
    for _ in range(2):
        reranker.scores(QUERY, [TEXT], timeout_seconds=30)
    assert len(calls) == 1


def test_who_waits_for_the_loading_too_long_goes_on_without(cross_encoder_folder):
    reranker = made(cross_encoder_folder)
    with reranker._lock, pytest.raises(RerankUnavailable, match="still being loaded"):
        reranker.scores(QUERY, [TEXT], timeout_seconds=0.05)


@pytest.fixture
def library(monkeypatch, tmp_path) -> Any:
    """Stand in for fastembed and its hub, which tests never reach: `library.download` says what a download does."""
    described = {
        "model": "owner/small",
        "sources": {"hf": "hub/small-onnx", "url": None},
        "model_file": "onnx/model.onnx",
        "additional_files": ["onnx/model.onnx_data"],
    }
    hub, encoders = ModuleType("huggingface_hub"), ModuleType("fastembed.rerank.cross_encoder")
    asked: list[tuple[str, dict[str, Any]]] = []

    def download(repository: str, **options: Any) -> str:
        asked.append((repository, options))
        return str(tmp_path / "snapshot")

    stand_in = SimpleNamespace(download=download, asked=asked)
    hub.snapshot_download = lambda *args, **options: stand_in.download(*args, **options)  # type: ignore[attr-defined]
    encoders.TextCrossEncoder = SimpleNamespace(list_supported_models=lambda: [described])  # type: ignore[attr-defined]
    for name in ("fastembed", "fastembed.rerank"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hub.__name__, hub)
    monkeypatch.setitem(sys.modules, encoders.__name__, encoders)
    return stand_in


def test_a_named_model_is_downloaded_into_the_models_folder(library, tmp_path):
    files = cross_encoder_files(Path("owner/small"), tmp_path / "models")
    assert files.graph == tmp_path / "snapshot" / "onnx" / "model.onnx"
    assert files.tokenizer == tmp_path / "snapshot" / "tokenizer.json"
    ((repository, options),) = library.asked
    assert repository == "hub/small-onnx"
    assert options["cache_dir"].is_relative_to(tmp_path / "models")
    assert options["allow_patterns"] == ["onnx/model.onnx", "onnx/model.onnx_data", "tokenizer.json"]


def test_a_name_that_nobody_knows_is_refused_with_those_that_are(library, tmp_path):
    with pytest.raises(Misconfigured) as raised:
        cross_encoder_files(Path("owner/large"), tmp_path)
    assert "owner/small" in (raised.value.hint or "")


def test_a_download_that_fails_makes_the_reranker_unavailable(library, tmp_path):
    def fail(*_: Any, **__: Any) -> str:
        raise OSError("https://hub.example/secret")

    library.download = fail
    with pytest.raises(RerankUnavailable) as raised:
        cross_encoder_files(Path("owner/small"), tmp_path)
    assert "hub.example" not in str(raised.value.problem())
