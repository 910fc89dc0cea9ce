"""Read the text of an image: RapidOCR finds its lines, which are put in the order of reading. Extra: `footnote[ocr]`.

The models come with the package: nothing is downloaded.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain import Notice
from app.ingestion.loaders.ocr_order import Line, in_reading_order
from app.ingestion.port import LoadLimits

THREADS = max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
LONGEST_SIDE = 2000
"""Pixels of the longer side of what is read; a letter of ten points is then 24 of them high on an A4 page."""

_LEAST_CONFIDENCE = 0.5
_SURE = 0.85
_UPRIGHT, _QUARTERS, _HALF = 0, (3, 1), 2

Image = NDArray[np.uint8]
"""Rows, columns, and blue, green and red."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """The text of an image, and the mean confidence of its letters, from 0 to 1."""

    text: str
    confidence: float


NOTHING = Recognised("", 0.0)


def is_available(limits: LoadLimits) -> bool:
    """Return whether the extra is there and may be used."""
    return limits.ocr_page_seconds > 0 and find_spec("rapidocr") is not None


def engine_name() -> str:
    """Return the name and version of what reads, for the extraction report."""
    return f"rapidocr {version('rapidocr')}"


def hint_for_scans(limits: LoadLimits) -> str:
    """Return what helps a file whose pages have no text."""
    if find_spec("rapidocr") is None:
        return "to recognise the text of pictures and scans, install the extra: pip install 'footnote[ocr]'"
    if limits.ocr_page_seconds <= 0:
        return "to recognise the text of pictures and scans, raise FOOTNOTE_OCR_PAGE_SECONDS above 0"
    return "nothing could be read in it: scan it anew, straight and with at least 200 dots per inch"


def pages_without_text(numbers: Sequence[int], limits: LoadLimits, recognised: int) -> tuple[Notice, ...]:
    """Return the warning that these pages have no text, with what may help where they were not recognised."""
    if not numbers:
        return ()
    hint = {} if is_available(limits) else {"hint": hint_for_scans(limits)}
    if len(numbers) + recognised > limits.max_ocr_pages:
        hint = {"hint": f"only {limits.max_ocr_pages} pages were recognised: split it, or raise FOOTNOTE_MAX_OCR_PAGES"}
    return (Notice("pages_without_text", f"{len(numbers)} pages have no text", {"pages": list(numbers), **hint}),)


def report(confidences: Mapping[int, float]) -> dict[str, Any]:
    """Return what the extraction report says of recognised pages, given each one's number and confidence."""
    if not confidences:
        return {}
    mean = round(sum(confidences.values()) / len(confidences), 4)
    pages = [{"page": number, "confidence": confidence} for number, confidence in sorted(confidences.items())]
    return {"ocr": {"engine": engine_name(), "confidence": mean, "pages": pages}}


def recognise(image: Image) -> Recognised:
    """Return the text of an image; one that lies on its side or upside down is turned."""
    best = _read(image, _UPRIGHT)
    if not best.lines or (best.confidence >= _SURE and not best.lies_on_its_side):
        return best.recognised()
    for turns in _QUARTERS if best.lies_on_its_side else (_HALF,):
        turned = _read(image, turns)
        if turned.weight > best.weight:
            best = turned
        if best is turned and best.confidence >= _SURE:
            break
    return best.recognised()


@dataclass(frozen=True, slots=True)
class _Reading:
    lines: Sequence[Line]

    @property
    def weight(self) -> float:
        """Return how many letters were read, each by its confidence, squared since a wrong turn still finds letters."""
        return sum(line.confidence**2 * len(line.text) for line in self.lines)

    @property
    def confidence(self) -> float:
        letters = sum(len(line.text) for line in self.lines)
        return sum(line.confidence * len(line.text) for line in self.lines) / max(1, letters)

    @property
    def lies_on_its_side(self) -> bool:
        """Return whether most letters stand in boxes that are higher than wide; so do lines of vertical writing."""
        letters = sum(len(line.text) for line in self.lines)
        return sum(len(line.text) for line in self.lines if line.height > 1.5 * line.width) > 0.5 * letters

    def recognised(self) -> Recognised:
        if not self.lines:
            return NOTHING
        return Recognised(in_reading_order(self.lines), round(self.confidence, 4))


def _read(image: Image, turns: int) -> _Reading:
    turned = np.ascontiguousarray(np.rot90(image, turns))
    found = _engine()(turned, use_cls=False)
    if found.boxes is None or not found.txts:
        return _Reading(())
    boxes = np.asarray(found.boxes, dtype=np.float64)
    corners = np.concatenate([boxes.min(axis=1), boxes.max(axis=1)], axis=1)
    return _Reading(
        [
            Line(float(left), float(top), float(right), float(bottom), text, float(score))
            for (left, top, right, bottom), text, score in zip(corners, found.txts, found.scores, strict=True)
            if text.strip()
        ]
    )


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Return the engine of this process, made when the first image is read: it takes 400 MB."""
    import rapidocr

    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    models = Path(rapidocr.__file__).parent / "models"
    # A model that is named is never downloaded.
    paths = {f"{task}.model_path": str(next(models.glob(f"*_{task.lower()}_*.onnx"))) for task in ("Det", "Cls", "Rec")}
    return rapidocr.RapidOCR(
        params={
            **paths,
            "Global.log_level": "critical",
            "Global.text_score": _LEAST_CONFIDENCE,
            "Global.max_side_len": LONGEST_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": THREADS,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
