"""Recognise the pages of a PDF that have no usable text, one at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from app.ingestion.loaders import ocr
from app.ingestion.loaders.ocr import Recognised
from app.ingestion.port import Source

_STAMP_CHARACTERS = 60
"""A page that is a picture may have a stamp or its number as text, but not more than this."""
_WHOLE_PAGE = 0.6
_LARGEST_SCALE = 4.0


def unread_pages(document: Any, texts: Sequence[str]) -> list[int]:
    """Return the indexes of pages without usable text that show something: those that recognition may help."""
    return [index for index, text in enumerate(texts) if _is_unread(document, index, text)]


def recognise_pages(document: Any, indexes: Sequence[int], source: Source) -> Iterator[tuple[int, Recognised]]:
    """Yield each page's index and its recognised text, up to a limit; nothing where it is not available."""
    if not indexes or not ocr.is_available(source.limits):
        return
    indexes = indexes[: source.limits.max_ocr_pages]
    source.allow_pages(len(indexes))
    for read, index in enumerate(indexes):
        source.tell_pages(read, len(indexes))
        try:
            image = _rendered(document, index)
        except pdfium.PdfiumError:
            continue
        yield index, ocr.recognise(image)


def _is_unread(document: Any, index: int, text: str) -> bool:
    if len(text) > _STAMP_CHARACTERS:
        return False
    try:
        page = document[index]
    except pdfium.PdfiumError:
        return False
    if not text:
        return next(iter(page.get_objects(max_depth=1)), None) is not None
    return _pictured_share(page) >= _WHOLE_PAGE


def _pictured_share(page: Any) -> float:
    """Return how much of the page its largest picture covers."""
    width, height = page.get_size()
    areas = [0.0]
    for picture in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=4):
        left, bottom, right, top = picture.get_bounds()
        areas.append((min(right, width) - max(left, 0)) * (min(top, height) - max(bottom, 0)))
    return max(areas) / max(1.0, float(width * height))


def _rendered(document: Any, index: int) -> ocr.Image:
    page = document[index]
    scale = min(_LARGEST_SCALE, ocr.LONGEST_SIDE / max(1.0, *page.get_size()))
    bitmap = page.render(scale=scale, rev_byteorder=False)
    image = np.array(bitmap.to_numpy()[:, :, :3])
    bitmap.close()
    page.close()
    return image
