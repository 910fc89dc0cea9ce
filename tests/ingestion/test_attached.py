from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain import Attachment, Extraction
from app.ingestion.attached import with_usable_attachments
from app.ingestion.loaders import ocr
from app.ingestion.port import PrepareRequest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture
def usable(tmp_path: Path, request_for: Callable[..., PrepareRequest]):
    """Return the names that are kept and the warnings about the others."""

    def run(*attachments: Attachment, **limits: object) -> tuple[list[str], list[str]]:
        extraction = Extraction("text", "eml", "message/rfc822", "email", attachments=attachments)
        request = request_for(tmp_path / "a.eml", attachments_folder=tmp_path, limits=limits)
        looked_at = with_usable_attachments(extraction, request)
        return [each.name for each in looked_at.attachments], [notice.detail for notice in looked_at.warnings]

    return run


def test_what_a_loader_reads_goes_on_and_all_else_is_named(usable) -> None:
    kept, warnings = usable(
        Attachment("a.txt", "text/plain", b"words"),
        Attachment("b.exe", "application/octet-stream", b"MZ" + bytes(range(32)) * 20),
        Attachment(
            "c.doc", "application/msword", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le")
        ),
        Attachment("d.zip", "application/zip", b"PK\x03\x04 cut off"),
    )

    assert kept == ["a.txt"]
    assert [warning.split("'")[1] for warning in warnings] == ["b.exe", "c.doc", "d.zip"]


def test_names_are_no_paths_and_differ(usable) -> None:
    words = b"words"
    kept, _ = usable(
        Attachment("../../etc/passwd.txt", None, words),
        Attachment("..\\..\\etc\\passwd.txt", None, words),
        Attachment("A.TXT", None, words),
        Attachment("a.txt", None, words),
        Attachment("", None, words),
        Attachment("x" * 500 + ".txt", None, words),
    )

    assert kept[:5] == [".._.._etc_passwd.txt", ".._.._etc_passwd (2).txt", "A.TXT", "a (2).txt", "attachment"]
    assert len(kept[5]) == 120
    assert kept[5].endswith("x.txt")


def test_pictures_go_on_only_where_they_can_be_recognised(usable, monkeypatch) -> None:
    kept, [warning] = usable(Attachment("a.png", "image/png", PNG), ocr_page_seconds=0)
    assert kept == []
    assert "FOOTNOTE_OCR_PAGE_SECONDS" in warning

    monkeypatch.setattr(ocr, "find_spec", lambda name: object())
    assert usable(Attachment("a.png", "image/png", PNG)) == (["a.png"], [])


def test_those_above_the_limit_are_named(usable) -> None:
    kept, warnings = usable(*(Attachment(f"{n}.txt", None, b"words") for n in range(3)), max_attachments=2)

    assert kept == ["0.txt", "1.txt"]
    assert ["2.txt" in warning and "FOOTNOTE_MAX_ATTACHMENTS" in warning for warning in warnings] == [True]
