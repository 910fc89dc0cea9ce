import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.errors import EmbeddingUnavailable, Misconfigured
from app.inference.embedders import e5_files
from app.inference.embedders.e5_files import GRAPH, MANIFEST, MODEL_NAME, TOKENIZER, converted_files, files_in

pytestmark = pytest.mark.model


@pytest.fixture
def copy(model_folder: Path, tmp_path: Path) -> Path:
    """A models folder of the test's own, with a sound model in it."""
    shutil.copytree(model_folder / MODEL_NAME, tmp_path / "models" / MODEL_NAME)
    return tmp_path / "models"


@pytest.fixture
def conversions(monkeypatch, model_folder: Path) -> list[Path]:
    """Stand in for the converter, which takes seconds, with a copy of what it made; lists its runs."""
    runs: list[Path] = []

    def run(weights: Path, work: Path) -> None:
        runs.append(work)
        for path in (model_folder / MODEL_NAME).iterdir():
            if path.name != MANIFEST:
                shutil.copy(path, work)

    monkeypatch.setattr(e5_files, "_run_conversion", run)
    return runs


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_sound_files_are_used_as_they_are(copy, conversions):
    files = converted_files(copy)
    assert files.graph == copy / MODEL_NAME / GRAPH
    assert files.tokenizer == copy / MODEL_NAME / TOKENIZER
    assert conversions == []


def test_sound_files_need_no_writable_folder(copy, conversions):
    before = sorted(path.name for path in copy.iterdir())
    converted_files(copy)
    assert sorted(path.name for path in copy.iterdir()) == before


@pytest.mark.parametrize("name", [GRAPH, "model.onnx.data", TOKENIZER])
def test_a_damaged_file_is_converted_again(copy, conversions, name):
    sound = content(copy / MODEL_NAME)
    path = copy / MODEL_NAME / name
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    times = path.stat()
    path.write_bytes(damaged)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    converted_files(copy)
    assert len(conversions) == 1
    assert content(copy / MODEL_NAME) == sound


@pytest.mark.parametrize("name", [GRAPH, "model.onnx.data", TOKENIZER, MANIFEST])
def test_an_absent_file_is_converted_again(copy, conversions, name):
    sound = content(copy / MODEL_NAME)
    (copy / MODEL_NAME / name).unlink()
    converted_files(copy)
    assert content(copy / MODEL_NAME) == sound


@pytest.mark.parametrize("manifest", [b"", b"[]", b'{"converter": 0}', b"\xff"])
def test_a_manifest_that_says_nothing_is_written_anew(copy, conversions, manifest):
    (copy / MODEL_NAME / MANIFEST).write_bytes(manifest)
    converted_files(copy)
    assert len(conversions) == 1


def test_files_of_an_older_converter_are_converted_again(copy, conversions, monkeypatch):
    monkeypatch.setattr(e5_files, "CONVERTER_VERSION", e5_files.CONVERTER_VERSION + 1)
    converted_files(copy)
    converted_files(copy)
    assert len(conversions) == 1


def test_several_at_once_convert_once(tmp_path, conversions):
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(converted_files, [tmp_path / "new"] * 4))) == 1
    assert len(conversions) == 1


def test_a_conversion_that_dies_leaves_nothing_that_is_used(tmp_path, monkeypatch):
    def die(weights: Path, work: Path) -> None:
        (work / GRAPH).write_bytes(b"half")
        raise EmbeddingUnavailable("died")

    monkeypatch.setattr(e5_files, "_run_conversion", die)
    for _ in range(2):
        with pytest.raises(EmbeddingUnavailable):
            converted_files(tmp_path)
    assert list((tmp_path / MODEL_NAME).iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_without_its_path(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbeddingUnavailable) as raised:
        converted_files(tmp_path / "file" / "models")
    assert "FOOTNOTE_MODELS" in raised.value.hint
    assert str(tmp_path) not in str(raised.value.problem())


def test_the_converters_own_failure_is_told_by_the_log(tmp_path, caplog):
    broken = tmp_path / "weights.bin"
    broken.write_bytes(b"no weights")
    with pytest.raises(EmbeddingUnavailable, match="could not be converted"):
        e5_files._run_conversion(broken, tmp_path)
    assert "E5S1" in caplog.records[-1].said


@pytest.mark.slow
def test_two_processes_convert_equal_bytes_from_any_folder(model_folder, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('the wrong app')")
    program = (
        "import sys; from pathlib import Path; from app.inference.embedders.e5_files import converted_files; "
        "converted_files(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "models")]
    processes = [subprocess.Popen(command, cwd=tmp_path) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    made = content(tmp_path / "models" / MODEL_NAME)
    assert (
        json.loads(made[MANIFEST])["files"] == json.loads((model_folder / MODEL_NAME / MANIFEST).read_bytes())["files"]
    )


def test_an_operators_folder_is_used_without_a_manifest(copy):
    (copy / MODEL_NAME / MANIFEST).unlink()
    assert files_in(copy / MODEL_NAME).graph.is_file()


def test_an_operators_damaged_folder_is_refused(copy):
    (copy / MODEL_NAME / TOKENIZER).write_bytes(b"damaged")
    with pytest.raises(EmbeddingUnavailable, match="do not match"):
        files_in(copy / MODEL_NAME)


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
def test_an_operators_folder_without_a_file_is_refused_by_its_name(copy, name):
    (copy / MODEL_NAME / name).unlink()
    with pytest.raises(Misconfigured, match=name):
        files_in(copy / MODEL_NAME)
