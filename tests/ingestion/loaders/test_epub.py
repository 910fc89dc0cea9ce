import io
import zipfile

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument, PasswordRequired

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PAGE = "application/xhtml+xml"


def book(
    *chapters: str | bytes, metadata: str = "", spine: str = "", manifest: str = "", guide: str = "", **parts: str
) -> bytes:
    """Pack a book of chapters c0.xhtml, c1.xhtml and so on; a keyword names a part (`META_INF__encryption_xml`)."""
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml" media-type="{PAGE}"/>' for n in range(len(chapters)))
    spine = spine or "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}{manifest}</manifest><spine>{spine}</spine>{guide}</package>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OPS/book.opf", package)
        for number, chapter in enumerate(chapters):
            archive.writestr(f"OPS/c{number}.xhtml", chapter)
        for name, content in parts.items():
            stem, _, ending = name.replace("META_INF__", "META-INF/").rpartition("_")
            archive.writestr(f"{stem if stem.startswith('META') else 'OPS/' + stem}.{ending}", content)
    return file.getvalue()


def page(body: str) -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
    )


def test_chapters_come_in_the_order_of_the_spine(load) -> None:
    data = book(
        page("<h1>Two</h1><p>b</p>"), page("<h1>One</h1><p>a</p>"), spine='<itemref idref="c1"/><itemref idref="c0"/>'
    )
    extraction = load(data, "a.epub")

    assert extraction.text == "One\n\na\n\nTwo\n\nb"
    assert [(heading.level, heading.title, heading.start) for heading in extraction.headings] == [
        (1, "One", 0),
        (1, "Two", 8),
    ]


def test_metadata_of_the_package_is_kept(load) -> None:
    metadata = (
        "<dc:title> A  Book </dc:title><dc:creator>Ann</dc:creator><dc:creator>Bo</dc:creator>"
        "<dc:language>de</dc:language><dc:subject>Snow</dc:subject><dc:identifier>isbn:1</dc:identifier>"
    )
    extraction = load(book(page("<p>x</p>"), metadata=metadata), "a.epub")

    assert extraction.title == "A Book"
    assert extraction.metadata == {
        "authors": ["Ann", "Bo"],
        "language": "de",
        "subjects": ["Snow"],
        "identifier": "isbn:1",
    }


def test_tables_of_contents_are_left_out(load) -> None:
    nav = f'<item id="n" href="nav.xhtml" media-type="{PAGE}" properties="nav"/>'
    toc = f'<item id="t" href="toc.xhtml" media-type="{PAGE}"/>'
    data = book(
        page("<nav>Go to page 9</nav><p>words</p><aside>a footnote</aside>"),
        manifest=nav + toc,
        spine='<itemref idref="n"/><itemref idref="t"/><itemref idref="c0"/>',
        guide='<guide><reference type="toc" href="toc.xhtml"/></guide>',
        nav_xhtml=page("<nav><a href='c0.xhtml'>Chapter</a></nav>"),
        toc_xhtml=page("<p>Chapter ... 1</p>"),
    )

    assert load(data, "a.epub").text == "words\n\na footnote"


def test_a_chapter_without_a_heading_gets_the_title_of_the_contents(load) -> None:
    ncx = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>'
        '<navPoint><navLabel><text>The Sea</text></navLabel><content src="c0.xhtml"/></navPoint></navMap></ncx>'
    )
    item = '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    extraction = load(book(page("<p>water</p>"), page("<p>more</p>"), manifest=item, toc_ncx=ncx), "a.epub")

    assert [(heading.title, heading.start) for heading in extraction.headings] == [("The Sea", 0)]


def encryption(algorithm: str, target: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:e="http://www.w3.org/2001/04/xmlenc#">'
        f'<e:EncryptedData><e:EncryptionMethod Algorithm="{algorithm}"/>'
        f'<e:CipherData><e:CipherReference URI="{target}"/></e:CipherData></e:EncryptedData></encryption>'
    )


def test_a_protected_book_is_refused_with_a_plain_word(load) -> None:
    secret = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OPS/c0.xhtml")

    with pytest.raises(PasswordRequired, match="digital rights") as caught:
        load(book("\x01\x02", META_INF__encryption_xml=secret), "a.epub")
    assert caught.value.code == "drm_protected"


def test_obfuscated_fonts_hide_no_text(load) -> None:
    fonts = encryption("http://www.idpf.org/2008/embedding", "OPS/font.otf")

    assert load(book(page("<p>x</p>"), META_INF__encryption_xml=fonts), "a.epub").text == "x"


def test_missing_chapters_are_named_and_lower_the_coverage(load) -> None:
    item = f'<item id="g" href="gone.xhtml" media-type="{PAGE}"/>'
    data = book(page("<p>x</p>"), manifest=item, spine='<itemref idref="c0"/><itemref idref="g"/>')
    extraction = load(data, "a.epub")

    assert extraction.coverage == 0.5
    assert [(notice.code, notice.extra) for notice in extraction.warnings] == [
        ("chapters_not_read", {"chapters": ["OPS/gone.xhtml"]})
    ]


def test_a_chapter_in_another_charset_is_read(load) -> None:
    chapter = '<?xml version="1.0" encoding="gb2312"?><html><body>客户</body></html>'

    assert load(book(chapter.encode("gbk")), "a.epub").text == "客户"


def test_a_book_without_a_package_is_damaged(load) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)

    with pytest.raises(DamagedDocument, match="package"):
        load(file.getvalue(), "a.epub")


def test_a_book_without_words_is_empty(load) -> None:
    with pytest.raises(EmptyDocument):
        load(book(page("<img src='a.png'/>")), "a.epub")


def test_a_chapter_that_unpacks_beyond_the_limit_is_refused(load) -> None:
    with pytest.raises(DocumentLimitExceeded, match="unpacks"):
        load(book(page("x" * 3_000_000)), "a.epub", limits={"parse_memory_bytes": 20_000_000})
