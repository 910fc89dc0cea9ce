"""HTML: the text that a reader sees, without scripts, navigation and what is hidden."""

import re
from dataclasses import dataclass

from lxml import etree

from app.domain import Extraction
from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.charset import charset_parameter, declared_in_markup, decode
from app.ingestion.loaders.html_rendering import render, storable
from app.ingestion.port import Source

MEDIA_TYPES = ("text/html",)

_NEVER_READ = {
    *("script", "style", "template", "noscript", "head", "svg", "iframe", "object", "embed", "canvas"),
    *("audio", "video", "select", "datalist", "textarea", "button", "input", "dialog", "map"),
}
_AROUND_THE_TEXT = {"nav", "footer", "aside", "form", "menu"}
_ROLES_AROUND = {"navigation", "contentinfo", "complementary", "search", "banner", "menu", "menubar", "toolbar"}
_NAMES_AROUND = {
    *("nav", "navbar", "navigation", "menu", "sidebar", "side-bar", "footer", "site-footer", "page-footer"),
    *("breadcrumb", "breadcrumbs", "cookie-banner", "cookie-consent", "cookie-notice", "advertisement", "ads"),
    *("share-buttons", "social-share", "skip-link", "skip-to-content", "noprint", "site-header", "page-header"),
    *("toc", "table-of-contents", "related-posts", "newsletter-signup", "pagination", "pager"),
}
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_LARGE_SHARE = 0.5
"""A part that holds more of the text than this is no boilerplate, whatever it is called."""

_SMALL_SHARE = 0.1
_MENU_LINKS = 20


def load(source: Source) -> Extraction:
    """Read a page; raises `UndecodableText` and `EmptyDocument`."""
    data = source.path.read_bytes()
    decoded = decode(data, declared_in_markup(data) or charset_parameter(source.declared))
    page = parse(decoded.text)
    assembly = Assembly(source.limits.max_characters)
    assembly.removed = decoded.text.count("\0")
    headings = render(page.content, assembly) if page.content is not None else []
    title = page.title or next((heading.title for heading in headings), None)
    return Extraction(
        text=assembly.text(),
        parser="html",
        media_type=source.media_type,
        source_type="html",
        encoding=decoded.encoding,
        title=title,
        headings=tuple(headings),
        warnings=assembly.notices(),
    )


def refuse_cut(parser: etree.HTMLParser | etree.XMLParser) -> None:
    """Raise `DocumentLimitExceeded` where the parser stopped at a limit of its own, since the rest would be lost."""
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            reason = entry.message.split(",", 1)[0]
            raise DocumentLimitExceeded(
                f"the markup is above a limit of its parser at line {entry.line}: {reason}",
                hint="make it flatter or split it, then send it again",
            )


@dataclass(frozen=True, slots=True)
class Page:
    """A page's title and the element that holds its readable content, boilerplate taken out."""

    title: str | None
    content: etree._Element | None


def parse(markup: str, *, is_whole: bool = False) -> Page:
    """Return the readable part of a page; of one that `is_whole`, such as a chapter, nothing is boilerplate.

    Raises `EmptyDocument` for markup without any element, and `DocumentLimitExceeded` for what the parser gives up on.
    """
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    data = markup.replace("\0", "").encode("utf-8", "ignore")
    try:
        root = etree.fromstring(data, parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    refuse_cut(parser)
    if root is None:
        raise EmptyDocument("the page has no content")
    title = _title(root)
    bodies = root.findall(".//body")
    content = bodies[0] if bodies else root
    for element in [found for found in content.iterdescendants(etree.Element) if _is_never_seen(found)]:
        remove(element)
    if is_whole:
        return Page(title, content)
    _drop_boilerplate(content)
    return Page(title, _main_part(content))


def _title(root: etree._Element) -> str | None:
    for element in root.iter("title"):
        title = on_one_line("".join(element.itertext()))
        if title:
            return title
    return None


def _is_never_seen(element: etree._Element) -> bool:
    if element.tag in _NEVER_READ or "hidden" in element.attrib:
        return True
    if element.get("aria-hidden") == "true" or _HIDDEN_STYLE.search(element.get("style", "")) is not None:
        return element.tag not in ("body", "html", "main")
    return False


def _drop_boilerplate(content: etree._Element) -> None:
    """Remove what stands around the text, unless it holds much of it (a page that is one big form)."""
    letters = _letters(content)
    for element in [found for found in content.iterdescendants(etree.Element) if _is_around(found)]:
        if _letters(element) <= _LARGE_SHARE * letters:
            remove(element)
    for element in [found for found in content.iterdescendants("ul") if _is_menu(found)]:
        if _letters(element) <= _SMALL_SHARE * letters:
            remove(element)


def _is_around(element: etree._Element) -> bool:
    if element.tag in _AROUND_THE_TEXT or element.get("role") in _ROLES_AROUND:
        return True
    if element.tag == "header":
        # A header outside an article is the site's; it goes unless the page's heading is in it.
        return element.find(".//h1") is None and next(element.iterancestors("article", "main"), None) is None
    names = element.get("class", "").split()
    return element.get("id") in _NAMES_AROUND or any(name in _NAMES_AROUND for name in names)


def _is_menu(element: etree._Element) -> bool:
    """Tell a long list of short links, such as the languages of an encyclopedia's page."""
    links = [_letters(link) for link in element.iterdescendants("a")]
    return len(links) >= _MENU_LINKS and sum(links) >= 0.95 * _letters(element) and sum(links) < 25 * len(links)


def _main_part(content: etree._Element) -> etree._Element:
    """Return the one `main` or `article` that holds most of the text, else everything."""
    enough = _LARGE_SHARE * _letters(content)
    for found in (
        [*content.iter("main"), *content.xpath(".//*[@role='main']")],
        content.findall(".//article"),
    ):
        parts = [part for part in found if _letters(part) > enough]
        if parts:
            return parts[0]
    return content


def _letters(element: etree._Element) -> int:
    return sum(len(text) - text.count(" ") - text.count("\n") for text in element.itertext())


def remove(element: etree._Element) -> None:
    """Take an element out, leaving the text that follows it."""
    parent = element.getparent()
    if parent is None:
        return
    tail = " " + storable(element.tail)
    before = element.getprevious()
    if before is not None:
        before.tail = storable(before.tail) + tail
    else:
        parent.text = storable(parent.text) + tail
    parent.remove(element)
