"""EPUB: the chapters in the order of the spine, each read as a page of HTML; the table of contents is left out."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag

from lxml import etree

from app.domain import Extraction, Heading, Notice
from app.errors import DamagedDocument, EmptyDocument, PasswordRequired, UndecodableText
from app.ingestion.loaders import html
from app.ingestion.loaders.archive import Archive, open_archive
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.charset import declared_in_markup, decode
from app.ingestion.loaders.html_rendering import render
from app.ingestion.port import Source

MEDIA_TYPES = ("application/epub+zip",)

_PAGES = {"application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document", "application/x-dtbook+xml"}
_FONT_OBFUSCATION = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_SINGLE = ("language", "publisher", "date", "identifier", "description")
_SEVERAL = {"creator": "authors", "contributor": "contributors", "subject": "subjects"}
_REPORTED_CHAPTERS = 100


def load(source: Source) -> Extraction:
    """Read a book.

    Raises `PasswordRequired` (`drm_protected`) for chapters that are encrypted, `DamagedDocument` for a container
    without a package, `DocumentLimitExceeded` and `EmptyDocument`.
    """
    with open_archive(source.path, source.limits) as archive:
        book = _book(archive)
        _refuse_encrypted(archive, book)
        assembly = Assembly(source.limits.max_characters)
        headings: list[Heading] = []
        unread: list[str] = []
        for path in book.spine:
            try:
                headings.extend(_chapter(archive, path, book.titles.get(path), assembly))
            except (DamagedDocument, UndecodableText):
                unread.append(path)
    if unread and len(unread) == len(book.spine):
        raise DamagedDocument(f"none of the book's {len(unread)} chapters can be read, the first is {unread[0]}")
    return Extraction(
        text=assembly.text(),
        parser="epub",
        media_type=source.media_type,
        source_type="epub",
        title=book.title or next((heading.title for heading in headings), None),
        metadata=book.metadata,
        headings=tuple(headings),
        coverage=round(1 - len(unread) / max(1, len(book.spine)), 4),
        warnings=(*assembly.notices(), *_chapters_not_read(unread)),
        details={"chapters": len(book.spine) - len(unread)},
    )


@dataclass(frozen=True, slots=True)
class _Book:
    """What the package says; `spine` and `titles` name parts of the container."""

    title: str | None
    spine: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)


def _book(archive: Archive) -> _Book:
    container = archive.tree("META-INF/container.xml")
    named = [] if container is None else [found.get("full-path", "") for found in _all(container, "rootfile")]
    package = next((name for name in named if archive.has(name)), None)
    package = package or next((name for name in archive.names if name.lower().endswith(".opf")), None)
    tree = archive.tree(package) if package else None
    if package is None or tree is None:
        raise DamagedDocument("the book has no package document, which lists its chapters")
    folder = posixpath.dirname(package)
    manifest = {found.get("id"): found for found in _all(tree, "item")}
    chapters = [manifest[found.get("idref")] for found in _all(tree, "itemref") if found.get("idref") in manifest]
    contents = {_resolved(folder, found.get("href", "")) for found in _all(tree, "reference") if _is_contents(found)}
    spine = dict.fromkeys(
        _resolved(folder, item.get("href", ""))
        for item in chapters
        if item.get("media-type", "").lower() in _PAGES and "nav" not in item.get("properties", "").split()
    )
    return _Book(
        title=next(_texts(tree, "title"), None),
        spine=tuple(path for path in spine if path not in contents),
        metadata=_metadata(tree),
        titles=dict(_contents(archive, folder, list(manifest.values()))),
    )


def _metadata(package: etree._Element) -> dict[str, Any]:
    found: dict[str, Any] = {name: next(_texts(package, name), None) for name in _SINGLE}
    found |= {plural: list(_texts(package, name)) for name, plural in _SEVERAL.items()}
    return {name: value for name, value in found.items() if value}


def _contents(archive: Archive, folder: str, items: list[etree._Element]) -> Iterator[tuple[str, str]]:
    """Yield the part and the title of each entry of the table of contents that names a whole part, the first last."""
    for item in items:
        path = _resolved(folder, item.get("href", ""))
        is_nav = "nav" in item.get("properties", "").split()
        if not is_nav and item.get("media-type") != "application/x-dtbncx+xml":
            continue
        try:
            tree = archive.tree(path)
        except DamagedDocument:
            continue
        if tree is not None:
            entries = list(_nav_entries(tree) if is_nav else _ncx_entries(tree))
            for href, title in reversed(entries):
                yield _resolved(posixpath.dirname(path), href), title


def _nav_entries(tree: etree._Element) -> Iterator[tuple[str, str]]:
    for link in _all(tree, "a"):
        yield link.get("href", ""), on_one_line("".join(link.itertext()))


def _ncx_entries(tree: etree._Element) -> Iterator[tuple[str, str]]:
    for point in _all(tree, "navPoint"):
        content, label = next(_all(point, "content"), None), next(_all(point, "text"), None)
        if content is not None and label is not None:
            yield content.get("src", ""), on_one_line("".join(label.itertext()))


def _chapter(archive: Archive, path: str, title: str | None, assembly: Assembly) -> list[Heading]:
    """Write a chapter; one without headings gets the title that the table of contents gives it."""
    data = archive.read(path)
    if data is None:
        raise DamagedDocument(f"the chapter {path} is missing")
    decoded = decode(data, declared_in_markup(data))
    try:
        content = html.parse(decoded.text, is_whole=True).content
    except EmptyDocument:
        return []
    if content is None:
        return []
    for navigation in list(content.iterdescendants("nav")):
        html.remove(navigation)
    before = assembly.length
    headings = render(content, assembly)
    start = before + 2 if before else 0
    if headings or not title or assembly.length <= start:
        return headings
    return [Heading(1, title, start)]


def _refuse_encrypted(archive: Archive, book: _Book) -> None:
    """Raise where chapters are encrypted; fonts often are only obfuscated, which hides no text."""
    tree = archive.tree("META-INF/encryption.xml")
    if tree is None:
        return
    for entry in _all(tree, "EncryptedData"):
        algorithm = next((found.get("Algorithm", "") for found in _all(entry, "EncryptionMethod")), "")
        target = next((found.get("URI", "") for found in _all(entry, "CipherReference")), "")
        if algorithm not in _FONT_OBFUSCATION and _resolved("", target) in book.spine:
            raise PasswordRequired(
                "the book is protected by digital rights management: its chapters are encrypted",
                code="drm_protected",
                hint="send a copy without the protection",
            )


def _is_contents(reference: etree._Element) -> bool:
    return reference.get("type", "").lower() == "toc" and not urldefrag(reference.get("href", "")).fragment


def _resolved(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(urldefrag(href).url)))


def _all(tree: etree._Element, name: str) -> Iterator[etree._Element]:
    """Yield the elements of a local name, whatever namespace a producer gave them."""
    yield from tree.iter(f"{{*}}{name}")


def _texts(package: etree._Element, name: str) -> Iterator[str]:
    for metadata in _all(package, "metadata"):
        for found in _all(metadata, name):
            text = on_one_line("".join(found.itertext()))
            if text:
                yield text


def _chapters_not_read(unread: list[str]) -> tuple[Notice, ...]:
    if not unread:
        return ()
    detail = f"{len(unread)} chapters are missing or damaged and were left out"
    return (Notice("chapters_not_read", detail, {"chapters": unread[:_REPORTED_CHAPTERS]}),)
