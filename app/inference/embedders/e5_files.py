"""Find the embedded model's files, checked by hash; convert them once where they are absent or damaged."""

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from app.errors import EmbeddingUnavailable, Misconfigured, StorageFull
from app.inference.embedders.e5_weights import WEIGHTS_SHA256, check_weights, find_weights, sha256_of

MODEL_NAME = "multilingual-e5-small"
CONVERTER_VERSION = 2
"""Raised when the files change for equal weights, so that older ones are converted again."""

GRAPH = "model.onnx"
TOKENIZER = "sentencepiece.model"
MANIFEST = "manifest.json"

_CONVERSION = "app.inference.embedders.e5_conversion"
_CONVERSION_TIMEOUT_SECONDS = 600

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What a loaded model is read from."""

    graph: Path
    tokenizer: Path


def converted_files(models_folder: Path) -> ModelFiles:
    """Return the files of the embedded model, sound; the first call of a machine converts them, in seconds.

    Raises `EmbeddingUnavailable` when the weights are absent or damaged or the folder cannot be written.
    """
    folder = models_folder / MODEL_NAME
    if not _is_current(folder):
        with _sole_converter(models_folder):
            if not _is_current(folder):
                _convert(folder)
    return ModelFiles(folder / GRAPH, folder / TOKENIZER)


def files_in(folder: Path) -> ModelFiles:
    """Return the files of a folder that an operator made; a manifest beside them is held against them.

    Raises `Misconfigured` when a file is absent and `EmbeddingUnavailable` when one is damaged.
    """
    for name in (GRAPH, TOKENIZER):
        if not (folder / name).is_file():
            raise Misconfigured(
                f"FOOTNOTE_LOCAL_MODEL is {str(folder)!r}, where no file {name} is",
                hint=f"give a folder with {GRAPH} and {TOKENIZER}, or {MODEL_NAME!r}",
            )
    manifest = _read_manifest(folder)
    if manifest is not None and not _hashes_match(folder, manifest):
        raise EmbeddingUnavailable(
            f"The files of the model {folder.name} do not match their {MANIFEST}", hint="copy the folder again"
        )
    return ModelFiles(folder / GRAPH, folder / TOKENIZER)


def _is_current(folder: Path) -> bool:
    manifest = _read_manifest(folder)
    if manifest is None:
        return False
    if (manifest.get("converter"), manifest.get("weights")) != (CONVERTER_VERSION, WEIGHTS_SHA256):
        return False
    if _hashes_match(folder, manifest):
        return True
    _logger.warning("the embedded model's files are damaged and will be converted again")
    return False


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _hashes_match(folder: Path, manifest: dict[str, Any]) -> bool:
    files = manifest.get("files")
    if not isinstance(files, dict) or not {GRAPH, TOKENIZER} <= files.keys():
        return False
    return all((folder / name).is_file() and sha256_of(folder / name) == wanted for name, wanted in files.items())


@contextmanager
def _sole_converter(models_folder: Path) -> Iterator[None]:
    """Let one process of the machine convert while the others wait for its files."""
    try:
        models_folder.mkdir(parents=True, exist_ok=True)
        with FileLock(models_folder / f"{MODEL_NAME}.lock", timeout=_CONVERSION_TIMEOUT_SECONDS):
            yield
    except Timeout:
        raise EmbeddingUnavailable(
            "Another process has been converting the embedded model for too long",
            hint="look for a stuck process, or convert on another machine and set FOOTNOTE_LOCAL_MODEL",
        ) from None
    except OSError as error:
        _logger.exception("the embedded model could not be converted")
        if StorageFull.told_by(error) is not None:
            raise StorageFull("The disk is too full for the embedded model, which takes 90 MB") from None
        raise EmbeddingUnavailable(
            "The folder of converted models cannot be written", hint="set FOOTNOTE_MODELS to a folder that can"
        ) from None


def _convert(folder: Path) -> None:
    """Convert in a child process, whose 800 MB go back to the system, and move the files into place."""
    weights = find_weights()
    check_weights(weights)
    _logger.info("converting the embedded model, once")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="converting-", dir=folder) as work:
        _run_conversion(weights, Path(work))
        paths = sorted(Path(work).iterdir())
        manifest = {
            "model": MODEL_NAME,
            "converter": CONVERTER_VERSION,
            "weights": WEIGHTS_SHA256,
            "files": {path.name: sha256_of(path) for path in paths},
        }
        # The manifest comes last: until it is there, the files beside it are not used.
        (Path(work) / MANIFEST).write_text(json.dumps(manifest, indent=2))
        for path in (*paths, Path(work) / MANIFEST):
            path.chmod(0o644)
            path.replace(folder / path.name)


def _run_conversion(weights: Path, work: Path) -> None:
    # -P keeps an `app` folder of the working directory from standing in for this package.
    command = [sys.executable, "-P", "-m", _CONVERSION, str(weights), str(work)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_CONVERSION_TIMEOUT_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise EmbeddingUnavailable("The conversion of the embedded model took too long") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        _logger.error(
            "the embedded model could not be converted", extra={"exit": done.returncode, "said": words[-2000:]}
        )
        raise EmbeddingUnavailable(
            "The embedded model could not be converted", hint="the service's log has the converter's own words"
        )
