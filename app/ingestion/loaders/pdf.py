"""PDF: PDFium reads each page's text; pypdf stands in for a page whose text PDFium has not, or has abnormal."""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from app.domain import Extraction, Heading, Notice, Page
from app.errors import DamagedDocument, DocumentLimitExceeded, NoExtractableText, PasswordRequired
from app.ingestion.loaders import ocr
from app.ingestion.loaders.canonical import Assembly, canonical, on_one_line
from app.ingestion.loaders.ocr_pages import recognise_pages, unread_pages
from app.ingestion.loaders.pdf_fonts import install_stand_in
from app.ingestion.loaders.pdf_forms import dynamic_form_text, page_with_fields
from app.ingestion.loaders.pdf_unreadable import abnormality, is_jumbled, readable
from app.ingestion.port import LoadLimits, Source

MEDIA_TYPES = ("application/pdf",)

_SHARE_OF_TIME_FOR_PYPDF = 0.25
_ABNORMAL_SHARE = 0.1
_MAX_HEADINGS = 5_000
_REPORTED_PAGES = 500
_CATALOG = re.compile(rb"(\d+)\s+0\s+obj\b(?:(?!endobj).){0,400}?/Type\s*/Catalog\b", re.S)
_FAR = 100_000
_HYPHEN_AT_LINE_END = re.compile(r"(?<=\w)\x02(?=\w)")
_SOFT_HYPHEN = "\u00ad"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_TRAILING_SPACE = re.compile(r"[ \t]+$", re.M)
_COLUMN_OF_LETTERS = re.compile(r"(?:^[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]{1,3}[ \u3000]*\n){4,}", re.M)
_MEANINGLESS_TITLE = re.compile(r"\(?anonymous\)?|untitled\d*|\S+\.[a-z0-9]{2,4}", re.I)

logger = logging.getLogger(__name__)


def load(source: Source) -> Extraction:
    """Read a PDF.

    Raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded`, and `NoExtractableText` with a report of
    each page in `extra`.
    """
    with _opened(source) as document:
        return _read(document, source)


@dataclass(frozen=True, slots=True)
class _PageText:
    text: str
    parser: Literal["pdfium", "pypdf", "ocr"]
    images: int
    confidence: float | None = None
    is_unreadable: bool = False
    """Some or all of what the page shows has no letters that can be known."""


class _Fallback:
    """Pypdf on the same file, opened when first needed and for a share of the time only."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._deadline = time.monotonic() + source.limits.parse_timeout_seconds * _SHARE_OF_TIME_FOR_PYPDF

    @cached_property
    def _reader(self) -> Any:
        return _pypdf_reader(self._source.path, self._source.password)

    def text(self, index: int) -> str:
        if time.monotonic() > self._deadline:
            return ""
        try:
            found: str = self._reader.pages[index].extract_text()
        except Exception:  # noqa: BLE001 - whatever pypdf stumbles over, PDFium's own text stands
            return ""
        return "" if is_jumbled(found) else found


def _opened(source: Source) -> Any:
    """Open the file with PDFium, as it is or as pypdf repairs it."""
    install_stand_in()
    try:
        return pdfium.PdfDocument(source.path, password=source.password)
    except pdfium.PdfiumError as error:
        if error.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise _password_required(source.password) from error
    for repair in (_with_trailer, _rewritten):
        try:
            return pdfium.PdfDocument(repair(source), password=source.password)
        except Exception as error:  # noqa: BLE001 - a damaged file breaks these in many ways; the next may do better
            logger.debug("a repair failed", extra={"repair": repair.__name__, "error": type(error).__name__})
    raise DamagedDocument(
        "the PDF is damaged and cannot be repaired", hint="open it in a PDF viewer and print it to a new PDF"
    )


def _password_required(password: str | None) -> PasswordRequired:
    if password is None:
        return PasswordRequired("the PDF is encrypted", hint="send its password in X-Document-Password")
    return PasswordRequired("the password does not open the PDF", code="password_wrong", hint="send another password")


def _with_trailer(source: Source) -> bytes:
    """Return a file that was cut off with a new trailer, by which PDFium finds the objects that are there."""
    data = source.path.read_bytes()
    catalogs = _CATALOG.findall(data)
    if not catalogs:
        raise ValueError("there is no catalog")
    return data + b"\nendobj\ntrailer<</Root %d 0 R>>\nstartxref\n0\n%%%%EOF\n" % int(catalogs[-1])


def _rewritten(source: Source) -> BytesIO:
    """Return the file as pypdf writes it anew from the objects that it finds."""
    from pypdf import PdfWriter  # Slow to import and seldom needed.

    repaired = BytesIO()
    PdfWriter(clone_from=_pypdf_reader(source.path, source.password)).write(repaired)
    return repaired


def _pypdf_reader(path: Path, password: str | None) -> Any:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    return PdfReader(path, strict=False, password=password)


def _read(document: Any, source: Source) -> Extraction:
    if len(document) > source.limits.max_pages:
        raise DocumentLimitExceeded(
            f"the PDF has {len(document)} pages, {source.limits.max_pages} are allowed",
            hint="split the file, or raise FOOTNOTE_MAX_PAGES",
        )
    if len(document) == 0:
        raise DamagedDocument("the PDF has no pages")
    pages = []
    for page in _page_texts(document, _Fallback(source)):
        pages.append(page)
        source.tell_pages(len(pages), len(document))
    unread = unread_pages(document, [page.text for page in pages])
    for index, found in recognise_pages(document, unread, source):
        if len(found.text) > len(pages[index].text):
            pages[index] = replace(
                pages[index], text=found.text, parser="ocr", confidence=found.confidence, is_unreadable=False
            )
    form = dynamic_form_text(document)
    empty = [number for number, page in enumerate(pages, 1) if not page.text]
    if len(empty) == len(pages) and not form:
        raise _no_text(pages, source.limits)
    assembly = Assembly(source.limits.max_characters)
    places = []
    for number, page in enumerate(pages, 1):
        start = assembly.add(page.text) if page.text else assembly.length
        places.append(Page(number, start, assembly.length))
    if form:
        assembly.add(form)
    text = assembly.text()
    return Extraction(
        text=text,
        parser=next(iter({page.parser for page in pages})) if len({page.parser for page in pages}) == 1 else "pdfium",
        media_type=source.media_type,
        source_type="pdf",
        title=_title(document),
        pages=tuple(places),
        headings=tuple(_headings(document, places, text)),
        coverage=round(1 - len(empty) / len(pages), 4),
        warnings=(
            *assembly.notices(),
            *ocr.pages_without_text(empty, source.limits, sum(page.parser == "ocr" for page in pages)),
            *_unreadable_text(pages),
        ),
        details=_details(pages),
    )


def _page_texts(document: Any, fallback: _Fallback) -> Iterator[_PageText]:
    for index in range(len(document)):
        try:
            yield _page_text(document, index, fallback)
        except pdfium.PdfiumError:
            yield _as_read(fallback.text(index), "pypdf", images=0)


def _page_text(document: Any, index: int, fallback: _Fallback) -> _PageText:
    page = page_with_fields(document, index)
    textpage = page.get_textpage()
    # Bounds beyond the page: this call knows letters outside the basic plane, and `get_text_range` does not.
    text = textpage.get_text_bounded(-_FAR, -_FAR, _FAR, _FAR)
    textpage.close()
    kinds = Counter(item.type for item in page.get_objects(max_depth=4)) if not text.strip() else Counter()
    page.close()
    images = kinds[pdfium_c.FPDF_PAGEOBJ_IMAGE]
    if kinds[pdfium_c.FPDF_PAGEOBJ_TEXT] or abnormality(text) > _ABNORMAL_SHARE:
        other = fallback.text(index)
        if other.strip() and (not text.strip() or abnormality(other) < abnormality(text) / 2):
            return _as_read(other, "pypdf", images)
    return _as_read(text, "pdfium", images)


def _as_read(text: str, parser: Literal["pdfium", "pypdf"], images: int) -> _PageText:
    kept = readable(text)
    return _PageText(_cleaned(kept), parser, images, is_unreadable=kept != text)


def _cleaned(text: str) -> str:
    text = _HYPHEN_AT_LINE_END.sub(_SOFT_HYPHEN, canonical(text)[0])
    text = _TRAILING_SPACE.sub("", _CONTROLS.sub("", text)) + "\n"
    # A column of single letters is a line that runs downwards.
    return _COLUMN_OF_LETTERS.sub(lambda column: re.sub(r"\s+", "", column.group()) + "\n", text).strip("\n")


def _no_text(pages: list[_PageText], limits: LoadLimits) -> NoExtractableText:
    report = {
        "parser": "pdfium",
        "pages": len(pages),
        "characters": 0,
        "coverage": 0.0,
        "by_page": [
            {"page": number, "characters": 0, "images": page.images}
            for number, page in enumerate(pages[:_REPORTED_PAGES], 1)
        ],
    }
    what = "holds only images" if any(page.images for page in pages) else "holds no text"
    return NoExtractableText(
        f"none of the PDF's pages has text ({len(pages)} in all): it {what}",
        hint=ocr.hint_for_scans(limits),
        extra={"report": report},
    )


def _unreadable_text(pages: list[_PageText]) -> tuple[Notice, ...]:
    numbers = [number for number, page in enumerate(pages, 1) if page.is_unreadable]
    if not numbers:
        return ()
    detail = f"text of {len(numbers)} pages was left out: its font does not tell which letters it shows"
    return (Notice("unreadable_text", detail, {"pages": numbers}),)


def _details(pages: list[_PageText]) -> dict[str, Any]:
    by_pypdf = [number for number, page in enumerate(pages, 1) if page.parser == "pypdf"]
    recognised = {number: page.confidence for number, page in enumerate(pages, 1) if page.confidence is not None}
    return ({"pages_by_pypdf": by_pypdf} if by_pypdf else {}) | ocr.report(recognised)


def _title(document: Any) -> str | None:
    title = on_one_line(document.get_metadata_value("Title")).removeprefix("Microsoft Word - ")
    return None if not title or _MEANINGLESS_TITLE.fullmatch(title) else title


def _headings(document: Any, pages: list[Page], text: str) -> Iterator[Heading]:
    """Yield the outline's entries where their titles stand on their pages, or else at the pages' beginnings."""
    last = 0
    for entry, _ in zip(document.get_toc(), range(_MAX_HEADINGS), strict=False):
        title = on_one_line(entry.get_title())
        destination = entry.get_dest()
        index = destination.get_index() if destination else None
        if not title or index is None or not 0 <= index < len(pages):
            continue
        page = pages[index]
        words = r"\s+".join(re.escape(word) for word in title.split())
        begin = max(last, page.start)
        found = re.compile(words, re.I).search(text, begin, page.end)
        start = found.start() if found else begin
        if start >= page.start and start <= page.end:
            last = start
            yield Heading(min(entry.level + 1, 6), title, start)
