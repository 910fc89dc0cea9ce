"""Find a cross-encoder's files in a folder, or download those of a model that fastembed names."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import Misconfigured, RerankUnavailable

TOKENIZER = "tokenizer.json"
GRAPHS = ("model.onnx", "onnx/model.onnx")
"""Where a folder may have its graph; the second as model repositories have it."""

_DOWNLOADS = "cross-encoders"


@dataclass(frozen=True, slots=True)
class CrossEncoderFiles:
    """What a loaded model is read from."""

    graph: Path
    tokenizer: Path


def cross_encoder_files(configured: Path, models_folder: Path) -> CrossEncoderFiles:
    """Return the files of a folder, else of the model of that name, which is downloaded once.

    Raises `Misconfigured` for what is neither, and `RerankUnavailable` where the download fails.
    """
    if configured.is_dir():
        return _files_in(configured)
    return _downloaded(configured.as_posix(), models_folder / _DOWNLOADS)


def _files_in(folder: Path) -> CrossEncoderFiles:
    graphs = [folder / name for name in GRAPHS if (folder / name).is_file()]
    if not graphs or not (folder / TOKENIZER).is_file():
        raise Misconfigured(
            f"FOOTNOTE_CROSS_ENCODER is {str(folder)!r}, which lacks {GRAPHS[0]} or {TOKENIZER}",
            hint=f"give a folder with {GRAPHS[0]} and {TOKENIZER}",
        )
    return CrossEncoderFiles(graphs[0], folder / TOKENIZER)


def _downloaded(name: str, cache: Path) -> CrossEncoderFiles:
    try:
        from fastembed.rerank.cross_encoder import TextCrossEncoder
        from huggingface_hub import snapshot_download
    except ImportError:
        raise Misconfigured(
            f"FOOTNOTE_CROSS_ENCODER is {name!r}, which is no folder; named models need the extra footnote[fastembed]",
            hint="pip install 'footnote[fastembed]', or give a folder with model.onnx and tokenizer.json",
        ) from None
    described = {model["model"]: model for model in TextCrossEncoder.list_supported_models()}
    if name not in described:
        raise Misconfigured(
            f"FOOTNOTE_CROSS_ENCODER is {name!r}, which is neither a folder nor a model that fastembed knows",
            hint=f"it knows {', '.join(sorted(described))}",
        )
    model: Mapping[str, Any] = described[name]
    wanted = [model["model_file"], *model["additional_files"], TOKENIZER]
    try:
        folder = Path(snapshot_download(model["sources"]["hf"], allow_patterns=wanted, cache_dir=cache))
    # The library raises kinds of several packages, whose words name addresses.
    except Exception as error:
        raise RerankUnavailable(
            f"The cross-encoder {name} cannot be downloaded", hint="give a folder with its files"
        ) from error
    return CrossEncoderFiles(folder / model["model_file"], folder / TOKENIZER)
