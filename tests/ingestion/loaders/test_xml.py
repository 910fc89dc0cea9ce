from pathlib import Path

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument

FEED = """<?xml version="1.0" encoding="{encoding}"?>
<rss><channel><title>客户新闻</title><link>https://example.org/</link>
<item><title>部署方案</title><description>&lt;p&gt;今天&lt;b&gt;讨论&lt;/b&gt;了&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</description></item>
</channel></rss>"""


@pytest.mark.parametrize("encoding", ["gb2312", "utf-8", "utf-16"])
def test_a_feed_reads_as_its_titles_and_texts(load, encoding: str) -> None:
    extraction = load(FEED.format(encoding=encoding).encode(encoding), "feed.xml")

    assert extraction.title == "客户新闻"
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "客户新闻"), (2, "部署方案")]
    assert extraction.text == "客户新闻\nhttps://example.org/\n\n部署方案\n\n今天讨论了"


def test_mixed_content_reads_as_one_block(load) -> None:
    assert load(b"<a><p>one <i>two</i> three</p><p>four</p></a>", "a.xml").text == "one two three\nfour"


def test_entities_that_name_files_are_not_followed(load, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    document = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "{secret.as_uri()}">]><a><p>seen &x;</p></a>'

    assert "SECRET" not in load(document.encode(), "a.xml").text


def test_entities_that_multiply_are_refused(load) -> None:
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    document = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "boom">{entities}]><a><p>seen &e9;</p></a>'

    with pytest.raises(DocumentLimitExceeded):
        load(document.encode(), "a.xml")


def test_what_stands_after_elements_nested_too_deep_is_never_lost_in_silence(load) -> None:
    document = b"<r>first " + b"<a>" * 3000 + b"deep" + b"</a>" * 3000 + b" last</r>"

    with pytest.raises(DocumentLimitExceeded):
        load(document, "a.xml")


@pytest.mark.parametrize("document", [b"<?xml version='1.0'?><a></a>", b"<?xml version='1.0'?>"])
def test_xml_without_text_is_refused(load, document: bytes) -> None:
    with pytest.raises((EmptyDocument, DamagedDocument)):
        load(document, "a.xml")
