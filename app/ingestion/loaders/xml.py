"""XML such as feeds and articles: the text of each element, and the text of HTML that stands escaped in one."""

import re
from collections.abc import Iterator

from lxml import etree

from app.domain import Extraction, Heading
from app.errors import DamagedDocument, EmptyDocument
from app.ingestion.loaders import html
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.charset import charset_parameter, declared_in_markup, decode
from app.ingestion.loaders.html_rendering import render
from app.ingestion.port import Source

MEDIA_TYPES = ("application/xml",)

_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_ESCAPED_HTML = re.compile(
    r"&(?:nbsp|amp|lt|quot|#\d+);|<(?:p|a|br|div|img|ul|ol|table|span|b|i|em|strong|h[1-6])\b[^>]*>", re.I
)
_MAX_LEVEL = 6


def load(source: Source) -> Extraction:
    """Read XML; entities that name files or addresses are never followed.

    Raises `DamagedDocument`, and `DocumentLimitExceeded` for what the parser gives up on.
    """
    data = source.path.read_bytes()
    decoded = decode(data, declared_in_markup(data) or charset_parameter(source.declared))
    root = _parse(decoded.text)
    assembly = Assembly(source.limits.max_characters)
    assembly.removed = decoded.text.count("\0")
    headings: list[Heading] = []
    for element, level in _textual_elements(root):
        text = "".join(element.itertext())
        if level:
            title = on_one_line(html_text(text))
            headings.append(Heading(level, title, assembly.add(title)))
        elif _ESCAPED_HTML.search(text):
            _add_html(text, assembly)
        else:
            assembly.add(on_one_line(text), "\n")
    return Extraction(
        text=assembly.text(),
        parser="xml",
        media_type=source.media_type,
        source_type="xml",
        encoding=decoded.encoding,
        title=headings[0].title if headings else None,
        headings=tuple(headings),
        warnings=assembly.notices(),
    )


def _parse(markup: str) -> etree._Element:
    parser = etree.XMLParser(
        encoding="utf-8", recover=True, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    data = _DECLARATION.sub("", markup, count=1).replace("\0", "").encode("utf-8", "ignore")
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DamagedDocument(f"the XML cannot be read: {error.msg}") from error
    html.refuse_cut(parser)
    if root is None:
        raise EmptyDocument("the XML has no element")
    return root


def html_text(markup: str) -> str:
    """Return the text of a piece of HTML on one line; plain text stays as it is."""
    if not _ESCAPED_HTML.search(markup):
        return markup
    return "".join(etree.fromstring(f"<div>{markup}</div>", etree.HTMLParser()).itertext())


def _add_html(markup: str, assembly: Assembly) -> None:
    try:
        content = html.parse(markup).content
    except EmptyDocument:
        return
    if content is not None:
        render(content, assembly)


def _textual_elements(root: etree._Element) -> Iterator[tuple[etree._Element, int]]:
    """Yield elements that have text of their own, in order, with the heading level of those that are titles."""
    stack = [(root, 0)]
    while stack:
        element, titled_ancestors = stack.pop()
        if not isinstance(element.tag, str):
            continue
        if _has_own_text(element):
            is_title = etree.QName(element).localname == "title"
            yield element, min(max(titled_ancestors, 1), _MAX_LEVEL) if is_title else 0
            continue
        titled = any(etree.QName(child).localname == "title" for child in element.iterchildren(etree.Element))
        below = titled_ancestors + titled
        stack.extend((child, below) for child in reversed(element))


def _has_own_text(element: etree._Element) -> bool:
    own = [element.text, *(child.tail for child in element)]
    return any(text and not text.isspace() for text in own)
