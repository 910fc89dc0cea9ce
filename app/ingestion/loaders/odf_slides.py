"""Read an OpenDocument presentation: a page for each slide, its title as heading, its notes marked as notes."""

from collections.abc import Iterator

from lxml import etree

from app.domain import Extraction
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.odf_content import DRAW, PARAGRAPHS, SVG, TABLE, TEXT, Content, Inline, is_left_out
from app.ingestion.loaders.odf_text import cells_of, rows_of
from app.ingestion.loaders.slides import Slide, Slides
from app.ingestion.port import Source

_PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_OF_THE_PAGE = ("page-number", "date-time", "header")


def read_presentation(content: Content, source: Source) -> Extraction:
    """Return the text of an ODP by slides; raises as `Slides` does."""
    slides = Slides(source.limits)
    for page in content.body.iterchildren(DRAW + "page"):
        slides.add(_slide(page, content))
    return slides.extraction(source, "odp", content.title)


def _slide(page: etree._Element, content: Content) -> Slide:
    style = page.get(DRAW + "style-name")
    visibility = content.style_says(style, "drawing-page", "drawing-page-properties", _PRESENTATION + "visibility")
    slide = Slide(is_hidden=visibility == "hidden")
    _read_shapes(page, slide)
    notes = (shape for found in page.iterchildren(_PRESENTATION + "notes") for shape in found)
    slide.notes = "\n".join(line for shape in notes if _class_of(shape) == "notes" for line in _lines(shape))
    return slide


def _read_shapes(group: etree._Element, slide: Slide) -> None:
    for shape in group.iterchildren(etree.Element):
        kind = _class_of(shape)
        if shape.tag == DRAW + "g":
            _read_shapes(shape, slide)
        elif shape.tag.startswith(DRAW) and kind not in _OF_THE_PAGE:
            slide.has_pictures |= shape.find(DRAW + "image") is not None
            text = "\n".join(_lines(shape))
            if kind == "title" and text and not slide.title:
                slide.title = on_one_line(text)
            elif text:
                (slide.footers if kind == "footer" else slide.blocks).append(text)


def _class_of(shape: etree._Element) -> str | None:
    kind: str | None = shape.get(_PRESENTATION + "class")
    return kind


def _lines(container: etree._Element, level: int = 0) -> Iterator[str]:
    """Yield a shape's text line by line; items of a list below the first level are indented."""
    for element in container:
        if is_left_out(element):
            continue
        if element.tag in PARAGRAPHS:
            text = Inline(lambda _: "").text(element)
            if text:
                yield ("  " * (level - 1) + "- " if level > 1 else "") + text
        elif element.tag == TABLE + "table":
            yield from _table_lines(element)
        elif element.tag == SVG + "desc":
            yield on_one_line(element.text or "")
        elif element.tag != SVG + "title":
            yield from _lines(element, min(level + (element.tag == TEXT + "list"), 8))


def _table_lines(table: etree._Element) -> Iterator[str]:
    for row in rows_of(table):
        cells = [on_one_line(" ".join(_lines(cell))) for cell in cells_of(row)]
        if any(cells):
            yield " | ".join(cells)
