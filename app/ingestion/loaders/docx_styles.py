"""What a DOCX says of its paragraphs, in place or by their styles: heading or title, and which list they belong to."""

import re
from dataclasses import dataclass

from docx.opc.part import XmlPart
from lxml import etree

from app.ingestion.loaders.docx_package import W, number_of, text_of

_HEADING_NAME = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|titulo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|címsor|başlık"
    r"|заголовок|标题|標題|見出し|제목)\s*(\d)",
    re.I,
)
_TITLE_NAMES = {"title", "titel", "标题", "表題"}


@dataclass(frozen=True, slots=True)
class Style:
    """What a paragraph or a style says, with what it inherits; `level` is a heading's, from 1."""

    level: int | None = None
    is_title: bool = False
    list_id: str | None = None
    list_level: int | None = None


class Styles:
    """The paragraph styles of a document by id."""

    def __init__(self, part: XmlPart | None) -> None:
        found = part.element.iterchildren(W + "style") if part else ()
        self._elements = {text_of(style, "styleId"): style for style in found}
        self._resolved: dict[str | None, Style] = {}

    def of(self, paragraph: etree._Element) -> Style:
        """Return what a paragraph says of itself and, where it is silent, what its style says."""
        style_id = text_of(paragraph.find(f"{W}pPr/{W}pStyle"))
        if style_id not in self._resolved:
            self._resolve(style_id)
        return _over(paragraph, self._resolved[style_id])

    def _resolve(self, style_id: str | None) -> None:
        """Resolve a style and those that it is based on, each once; of a circle, from where it is entered."""
        chain: dict[str | None, etree._Element] = {}
        base = style_id
        while base in self._elements and base not in chain and base not in self._resolved:
            chain[base] = self._elements[base]
            base = text_of(chain[base].find(W + "basedOn"))
        style = self._resolved.get(base, Style())
        for name, element in reversed(chain.items()):
            style = self._resolved[name] = _over(element, style)
        self._resolved.setdefault(style_id, style)


def _over(element: etree._Element, inherited: Style) -> Style:
    numbering = f"{W}pPr/{W}numPr/{W}"
    list_level = number_of(element.find(numbering + "ilvl"))
    name = text_of(element.find(W + "name")) or ""
    return Style(
        level=_heading_level(element, name) or inherited.level,
        is_title=name.lower() in _TITLE_NAMES or inherited.is_title,
        list_id=text_of(element.find(numbering + "numId")) or inherited.list_id,
        list_level=inherited.list_level if list_level is None else list_level,
    )


def _heading_level(element: etree._Element, name: str) -> int | None:
    outline = number_of(element.find(f"{W}pPr/{W}outlineLvl"))
    named = _HEADING_NAME.fullmatch(name.strip())
    level = outline + 1 if outline is not None else int(named.group(1)) if named else None
    return level if level and 1 <= level <= 9 else None
