"""What a DOCX's paragraph styles say: whether one is a heading or the title, and which list it belongs to."""

import re
from dataclasses import dataclass

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
    """A paragraph style with what it inherits; `level` is a heading's, from 1."""

    level: int | None = None
    is_title: bool = False
    list_id: str | None = None
    list_level: int | None = None


class Styles:
    """The paragraph styles of a document by id."""

    def __init__(self, root: etree._Element | None) -> None:
        found = root.iterchildren(W + "style") if root is not None else ()
        self._elements = {text_of(style, "styleId"): style for style in found}
        self._resolved: dict[str | None, Style] = {}

    def get(self, style_id: str | None) -> Style:
        """Return a style; one that is not defined says nothing."""
        if style_id not in self._resolved:
            self._resolved[style_id] = self._resolve(style_id)
        return self._resolved[style_id]

    def _resolve(self, style_id: str | None) -> Style:
        level = list_id = list_level = None
        is_title = False
        seen: set[str | None] = set()
        while style_id in self._elements and style_id not in seen:
            seen.add(style_id)
            element = self._elements[style_id]
            name = text_of(element.find(W + "name")) or ""
            is_title = is_title or name.lower() in _TITLE_NAMES
            level = level or _heading_level(element, name)
            numbering = element.find(f"{W}pPr/{W}numPr")
            if numbering is not None:
                list_id = list_id or text_of(numbering.find(W + "numId"))
                list_level = number_of(numbering.find(W + "ilvl")) if list_level is None else list_level
            style_id = text_of(element.find(W + "basedOn"))
        return Style(level, is_title, list_id, list_level)


def _heading_level(element: etree._Element, name: str) -> int | None:
    outline = number_of(element.find(f"{W}pPr/{W}outlineLvl"))
    named = _HEADING_NAME.fullmatch(name.strip())
    level = outline + 1 if outline is not None else int(named.group(1)) if named else None
    return level if level and 1 <= level <= 9 else None
