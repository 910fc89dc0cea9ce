import io
import zipfile
from pathlib import Path

import pytest

from app.errors import DamagedDocument, EmptyDocument, FootnoteError, UnsupportedMediaType
from app.ingestion.detection import detect
from app.ingestion.media_types import (
    BMP,
    CSV,
    DOCX,
    EML,
    EPUB,
    HTML,
    JPEG,
    JSON,
    JSON_LINES,
    MARKDOWN,
    MSG,
    ODP,
    ODS,
    ODT,
    PDF,
    PNG,
    PPTX,
    RTF,
    TEXT,
    TIFF,
    TSV,
    WEBP,
    XLSX,
    XML,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)


def packed(*names: str, **texts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in {**dict.fromkeys(names, "x"), **texts}.items():
            archive.writestr(name, text)
    return file.getvalue()


@pytest.fixture
def detected(tmp_path: Path):
    def run(data: bytes, filename: str | None = None, declared: str | None = None):
        path = tmp_path / "stored-under-its-hash"
        path.write_bytes(data)
        return detect(path, filename, declared)

    return run


@pytest.mark.parametrize(
    ("data", "filename", "declared", "media_type"),
    [
        (b"%PDF-1.7 ...", None, None, PDF),
        (b"\n\n%PDF-1.7 ...", None, None, PDF),
        (b"junk before %PDF-1.7 ...", "a.pdf", None, PDF),
        (packed("[Content_Types].xml", "word/document.xml"), None, None, DOCX),
        (packed("ppt/presentation.xml"), "a.pptm", None, PPTX),
        (packed("ppt/presentation.xml"), "a.ppsx", None, PPTX),
        (packed("xl/workbook.xml"), "a.xlsm", None, XLSX),
        (packed("XL\\Workbook.xml"), None, None, XLSX),
        (packed("word/document.xml"), "a.dotx", None, DOCX),
        (packed(mimetype=ODT), "a.odt", None, ODT),
        (packed(mimetype=ODS), None, None, ODS),
        (packed(mimetype=ODP + "-template"), "a.otp", None, ODP),
        (packed("content.xml"), "a.odt", None, ODT),
        (b"{\\rtf1 hello}", "a.rtf", None, RTF),
        (b"\xef\xbb\xbf{\\rtf1 hello}", None, "text/rtf", RTF),
        (packed("mimetype", "META-INF/container.xml"), "a.epub", None, EPUB),
        (packed(mimetype=EPUB), None, None, EPUB),
        (OLE + "__properties_version1.0".encode("utf-16-le"), "a.msg", None, MSG),
        (OLE + "__properties_version1.0 WordDocument".encode("utf-16-le"), None, None, MSG),
        (OLE + "__properties_version1.0 EncryptedPackage".encode("utf-16-le"), "a.msg", None, MSG),
        (b"From: a@example.org\n\nHello", "a.eml", None, EML),
        (b"Received: x\nFrom: a@example.org\nTo: b@example.org\nSubject: c\n\nHello", None, None, EML),
        (b"From: a@example.org\nTo: b@example.org\n\nHello", None, None, TEXT),
        (b"From: a@example.org\n\n<html>", None, "message/rfc822", EML),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a.png", None, PNG),
        (b"\xff\xd8\xff\xe0" + bytes(50), None, None, JPEG),
        (b"II*\0" + bytes(50), None, None, TIFF),
        (b"RIFF\0\0\1\0WEBPVP8 " + bytes(50), None, None, WEBP),
        (b"BM\x36\0\0\0" + bytes(4) + b"\x36\0\0\0\x28\0\0\0" + bytes(50), None, None, BMP),
        (b"def f(): pass\n", "a.py", None, "text/x-python"),
        (b"<?php echo 1;", "a.php", None, "text/x-php"),
        (b"{}", None, "application/javascript", "text/javascript"),
        (b"<!DOCTYPE html><p>x", None, None, HTML),
        ("<html><p>日本語".encode("utf-16"), None, None, HTML),
        (b'<?xml version="1.0"?><html xmlns="x">', None, None, HTML),
        (b'<?xml version="1.0"?><rss>', None, None, XML),
        (b"<rss version='2.0'>", None, None, XML),
        (b'{"a": 1}', None, None, JSON),
        (b'{"a": 1}\n{"a": 2}\n', None, None, JSON_LINES),
        (b'{"a": 1}\n{"a": 2}\n', "a.json", None, JSON_LINES),
        (b'{"a":\n1}', "a.jsonl", None, JSON),
        (b"{not json", None, None, TEXT),
        (b"a,b\n1,2\n", "a.csv", None, CSV),
        (b"a\tb\n", "a.tsv", None, TSV),
        (b"# A\n", "a.md", None, MARKDOWN),
        (b"# A\n", "A.MDX", None, MARKDOWN),
        (b"# A\n", None, "text/markdown; charset=utf-8", MARKDOWN),
        (b"# A\n", "a.md", "text/plain", MARKDOWN),
        (b"1\n00:00:01 --> 00:00:02\nHi\n", "a.srt", None, TEXT),
        (b"hello", None, "application/octet-stream", TEXT),
        (b"GIF89a is an image format of 1989.", None, None, TEXT),
        (b"with\0a few\0NULs", None, "text/plain", TEXT),
        ("今天讨论了部署方案".encode("utf-16-le"), "a.txt", None, TEXT),
        (b'{"a": 1}', None, "text/plain", TEXT),
    ],
)
def test_content_decides_then_the_name_then_the_declaration(detected, data, filename, declared, media_type) -> None:
    assert detected(data, filename, declared).media_type == media_type


@pytest.mark.parametrize(
    ("data", "filename", "declared", "claimed"),
    [
        (b"%PDF-1.7", "report.txt", None, TEXT),
        (b"%PDF-1.7", None, DOCX, DOCX),
        (packed("word/document.xml"), "report.pdf", None, PDF),
        (b"<!doctype html><p>x", "page.txt", None, TEXT),
        (b"just words", "report.pdf", None, PDF),
        (packed("xl/workbook.xml"), "report.pptx", None, PPTX),
        (packed("ppt/presentation.xml"), None, "application/vnd.ms-excel.sheet.macroEnabled.12", XLSX),
        (b"{\\rtf1 hello}", "report.doc", None, "application/msword"),
        (b"a,b\n1,2\n", "report.xls", None, "application/vnd.ms-excel"),
    ],
)
def test_a_renamed_file_is_taken_for_what_it_is_with_a_warning(detected, data, filename, declared, claimed) -> None:
    found = detected(data, filename, declared)

    assert [notice.code for notice in found.notices] == ["content_type_mismatch"]
    assert found.notices[0].extra == {"claimed": claimed, "found": found.media_type}


def test_a_right_name_brings_no_warning(detected) -> None:
    assert detected(b"%PDF-1.7", "report.pdf", "application/octet-stream").notices == ()


@pytest.mark.parametrize(
    ("data", "filename", "says", "hint"),
    [
        (OLE + "WordDocument".encode("utf-16-le"), "a.doc", "old binary Word", ".docx"),
        (OLE + "Workbook".encode("utf-16-le"), "a.xls", "old binary Excel", ".xlsx"),
        (OLE + "PowerPoint Document".encode("utf-16-le"), None, "old binary PowerPoint", ".pptx"),
        (packed("xl/workbook.bin"), "a.xlsb", "binary Excel", ".xlsx"),
        (OLE, "a.xls", "old binary Office", ".docx, .pptx or .xlsx"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.pdf", "encrypted Office", ".xlsx"),
        (packed("a.txt", "b.txt"), "a.zip", "ZIP", "one by one"),
        (b"\x7fELF" + bytes(50), None, "program", None),
        (bytes(range(32)) * 40, None, "binary", None),
    ],
)
def test_what_no_loader_reads_is_named_with_what_is_read(detected, data, filename, says, hint) -> None:
    with pytest.raises(UnsupportedMediaType, match=says) as caught:
        detected(data, filename)

    assert "read are text, Markdown, HTML" in caught.value.detail
    assert (hint or "") in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("filename", "media_type"), [("a.docx", DOCX), ("a.pptx", PPTX), ("a.xlsx", XLSX), (None, DOCX)]
)
def test_an_encrypted_office_document_is_left_to_the_loader_of_its_name(detected, filename, media_type) -> None:
    assert detected(OLE + "EncryptedPackage".encode("utf-16-le"), filename).media_type == media_type


def test_a_container_that_is_cut_off_is_damaged(detected) -> None:
    with pytest.raises(DamagedDocument):
        detected(packed("word/document.xml")[:40], "cut.docx")


def test_noise_named_as_a_pdf_is_damaged_not_unsupported(detected) -> None:
    with pytest.raises(DamagedDocument):
        detected(bytes(range(32)) * 40, "noise.pdf")


def test_no_bytes_are_an_empty_document(detected) -> None:
    with pytest.raises(EmptyDocument):
        detected(b"", "empty.pdf")


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"PK\x05\x06" + bytes(18), OLE])
def test_beginnings_of_containers_are_refused_with_a_reason(detected, data: bytes) -> None:
    with pytest.raises(FootnoteError) as caught:
        detected(data)
    assert caught.value.status in (415, 422)


@pytest.mark.parametrize(
    "text", ["%PDF-1.4 is how a PDF begins", "PK\x03\x04 is a ZIP", "{\\rtf is RTF", "<html> is a tag"]
)
def test_a_text_that_was_sent_as_text_is_taken_at_its_word(tmp_path: Path, text: str) -> None:
    file = tmp_path / "sent"
    file.write_bytes(text.encode())
    assert detect(file, None, "text/plain; charset=utf-8").media_type == "text/plain"


def test_a_file_is_not_text_because_its_sender_says_so(tmp_path: Path) -> None:
    file = tmp_path / "sent"
    file.write_bytes(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj")
    assert detect(file, None, "text/plain; charset=utf-8").media_type == "application/pdf"
    file.write_bytes(b"%PDF-1.4\n")
    assert detect(file, "a.txt", "text/plain; charset=utf-8").media_type == "application/pdf"
