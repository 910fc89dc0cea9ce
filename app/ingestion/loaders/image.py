"""Images: the text that recognition finds, page by page where the file holds several. Extra: `footnote[ocr]`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from app.domain import Extraction, Page
from app.errors import DamagedDocument, DocumentLimitExceeded, NoExtractableText
from app.ingestion.loaders import ocr
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.port import LoadLimits, Source

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MEDIA_TYPES = ("image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp")

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP")
_LARGEST_PIXELS = 200_000_000
_SMALLEST_SIDE = 8
_MIDDLE_GREY = 128


def load(source: Source) -> Extraction:
    """Recognise an image's text.

    Raises `NoExtractableText` where there is none or no extra, `DamagedDocument` and `DocumentLimitExceeded`.
    """
    if not ocr.is_available(source.limits):
        raise _no_text("the file is a picture, whose text was not recognised", source.limits)
    recognised = [ocr.recognise(image) for image in _images(source)]
    if not any(found.text for found in recognised):
        raise _no_text("no text was recognised in the picture", source.limits)
    assembly = Assembly(source.limits.max_characters)
    pages = []
    for number, found in enumerate(recognised, 1):
        start = assembly.add(found.text) if found.text else assembly.length
        pages.append(Page(number, start, assembly.length))
    empty = [number for number, found in enumerate(recognised, 1) if not found.text]
    return Extraction(
        text=assembly.text(),
        parser="ocr",
        media_type=source.media_type,
        source_type="image",
        pages=tuple(pages),
        coverage=round(1 - len(empty) / len(pages), 4),
        warnings=(*assembly.notices(), *ocr.pages_without_text(empty, source.limits, len(pages) - len(empty))),
        details=ocr.report({number: found.confidence for number, found in enumerate(recognised, 1) if found.text}),
    )


def _images(source: Source) -> Iterator[ocr.Image]:
    """Yield each frame upright, no longer than recognition wants it, on white where it is transparent."""
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = _LARGEST_PIXELS
    try:
        with Image.open(source.path, formats=_FORMATS) as picture:
            frames = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
            if frames > source.limits.max_ocr_pages:
                raise DocumentLimitExceeded(
                    f"the picture has {frames} pages, {source.limits.max_ocr_pages} are allowed",
                    hint="split the file, or raise FOOTNOTE_MAX_OCR_PAGES",
                )
            source.allow_pages(frames)
            for frame in range(frames):
                source.tell_pages(frame, frames)
                picture.seek(frame)
                yield _prepared(picture)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DocumentLimitExceeded(
            f"the picture has more than {_LARGEST_PIXELS} pixels", hint="send it smaller"
        ) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise DamagedDocument("the picture is cut off or damaged", hint="save it anew and send it again") from error


def _prepared(picture: "Picture") -> ocr.Image:
    from PIL import Image, ImageOps

    # A JPEG is decoded at a fraction of its size where that is enough.
    picture.draft("RGB", (ocr.LONGEST_SIDE, ocr.LONGEST_SIDE))
    upright = _in_eight_bits(ImageOps.exif_transpose(picture))
    upright.thumbnail((ocr.LONGEST_SIDE, ocr.LONGEST_SIDE))
    if min(upright.size) < _SMALLEST_SIDE:
        return np.full((_SMALLEST_SIDE, _SMALLEST_SIDE, 3), 255, dtype=np.uint8)
    layered = upright.convert("RGBA")
    # Light letters on nothing are read on black.
    letters = np.asarray(layered)
    visible = letters[letters[:, :, 3] > _MIDDLE_GREY][:, :3]
    is_light = visible.size > 0 and (letters[:, :, 3] <= _MIDDLE_GREY).any() and float(visible.mean()) > _MIDDLE_GREY
    paper = Image.new("RGBA", layered.size, "black" if is_light else "white")
    paper.alpha_composite(layered)
    return np.ascontiguousarray(np.asarray(paper.convert("RGB"))[:, :, ::-1])


def _in_eight_bits(picture: "Picture") -> "Picture":
    """Return the picture with its darkest and lightest values at 0 and 255, where its values have more than 8 bits."""
    from PIL import Image

    if not picture.mode.startswith(("I", "F")):
        return picture
    values = np.asarray(picture, dtype=np.float64)
    darkest, lightest = float(values.min()), float(values.max())
    scaled = (values - darkest) * (255 / max(lightest - darkest, 1e-9))
    return Image.fromarray(scaled.astype(np.uint8))


def _no_text(what: str, limits: LoadLimits) -> NoExtractableText:
    report = {"parser": "ocr", "pages": 1, "characters": 0, "coverage": 0.0}
    return NoExtractableText(what, hint=ocr.hint_for_scans(limits), extra={"report": report})
