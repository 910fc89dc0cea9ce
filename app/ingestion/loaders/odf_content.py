"""What an OpenDocument file says of its text: paragraphs as they are read, and the styles that matter."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lxml import etree

OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"

PARAGRAPHS = (TEXT + "p", TEXT + "h")

_SPACE = re.compile(r"[ \t\r\n]+")
_LEFT_OUT = {
    *(OFFICE + name for name in ("annotation", "annotation-end", "forms")),
    *(TEXT + name for name in ("tracked-changes", "ruby-text", "note-citation", "table-of-content")),
    *(TEXT + name for name in ("page-number", "page-count", "hidden-text", "hidden-paragraph")),
}
_MOST_SPACES = 1_000


@dataclass(frozen=True)
class Content:
    """A document's body, its title, and the roots in which styles stand."""

    body: etree._Element
    title: str | None
    root: etree._Element
    styles: etree._Element | None

    @cached_property
    def _styles(self) -> Mapping[tuple[str, str], etree._Element]:
        roots = [root for root in (self.styles, self.root) if root is not None]
        return {
            (style.get(STYLE + "family", ""), style.get(STYLE + "name", "")): style
            for root in roots
            for style in root.iter(STYLE + "style")
        }

    def style_names(self, name: str | None, family: str) -> Iterator[str]:
        """Yield a style's name and those that it inherits from."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            style = self._styles.get((family, name))
            name = None if style is None else style.get(STYLE + "parent-style-name")

    def style_says(self, name: str | None, family: str, properties: str, attribute: str) -> str | None:
        """Return an attribute among the properties of a style."""
        style = self._styles.get((family, name or ""))
        found = None if style is None else style.find(STYLE + properties)
        return None if found is None else found.get(attribute)

    @cached_property
    def numbered_lists(self) -> frozenset[tuple[str, int]]:
        """Return which levels of which list styles are numbered."""
        roots = [root for root in (self.styles, self.root) if root is not None]
        return frozenset(
            (style.get(STYLE + "name", ""), count(level.get(TEXT + "level"), 1))
            for root in roots
            for style in root.iter(TEXT + "list-style")
            for level in style.iterchildren(TEXT + "list-level-style-number")
            if level.get(STYLE + "num-format")
        )


def count(written: str | None, otherwise: int, most: int = 1 << 30) -> int:
    """Return an attribute that counts something, within bounds."""
    return min(int(written), most) if written and written.isdecimal() and len(written) < 10 else otherwise


@dataclass(slots=True)
class Inline:
    """Read paragraphs; what floats from them is put into `boxes`, what is noted at their foot goes to `note`."""

    note: Callable[[etree._Element], str]
    boxes: list[etree._Element] = field(default_factory=list)

    def text(self, paragraph: etree._Element) -> str:
        """Return a paragraph's text."""
        return "".join(self._pieces(paragraph)).strip()

    def _pieces(self, element: etree._Element) -> Iterator[str]:
        yield _SPACE.sub(" ", element.text or "")
        for child in element:
            if isinstance(child.tag, str):
                yield from self._piece(child)
            yield _SPACE.sub(" ", child.tail or "")

    def _piece(self, element: etree._Element) -> Iterator[str]:
        tag = element.tag
        if tag == TEXT + "s":
            yield " " * count(element.get(TEXT + "c"), 1, _MOST_SPACES)
        elif tag == TEXT + "tab":
            yield "\t"
        elif tag == TEXT + "line-break":
            yield "\n"
        elif tag == TEXT + "note":
            yield self.note(element)
        elif tag.startswith(DRAW) and tag != DRAW + "a":
            self.boxes.append(element)
        elif tag not in _LEFT_OUT:
            yield from self._pieces(element)


def is_left_out(element: etree._Element) -> bool:
    """Tell comments, deleted text and tables of contents from what the reader reads."""
    return not isinstance(element.tag, str) or element.tag in _LEFT_OUT
