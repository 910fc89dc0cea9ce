from pathlib import Path

import pytest

from app.errors import NoExtractableText
from app.ingestion.loaders import ocr

SCAN = Path(__file__).parents[2] / "files" / "pdf" / "ocr_test.pdf"
WORDS = "Docling bundles PDF document conversion to JSON and Markdown in an easy self contained package"


@pytest.fixture
def with_ocr() -> None:
    pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")


@pytest.mark.usefixtures("with_ocr")
def test_a_scan_gives_its_text_and_the_report_says_which_pages_were_recognised(load) -> None:
    extraction = load(SCAN.read_bytes(), "a.pdf")

    assert " ".join(extraction.text.split()) == WORDS
    assert extraction.parser == "ocr"
    assert extraction.coverage == 1.0
    report = extraction.report()["ocr"]
    assert [page["page"] for page in report["pages"]] == [1]
    assert report["confidence"] > 0.9


@pytest.mark.usefixtures("with_ocr")
def test_only_pages_without_text_are_recognised(load, make_pdf, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(ocr, "recognise", lambda image: seen.append(image.shape) or ocr.Recognised("read", 0.75))
    extraction = load(make_pdf(["typed", None, b"", "typed too"]), "a.pdf")

    assert [extraction.text[page.start : page.end] for page in extraction.pages] == ["typed", "read", "", "typed too"]
    assert len(seen) == 1
    assert max(seen[0]) == ocr.LONGEST_SIDE
    assert extraction.parser == "pdfium"
    assert extraction.coverage == 0.75
    assert extraction.report()["ocr"]["pages"] == [{"page": 2, "confidence": 0.75}]


@pytest.mark.usefixtures("with_ocr")
def test_a_stamp_on_a_picture_is_no_usable_text(load, make_pdf, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "recognise", lambda image: ocr.Recognised("the whole letter, and the stamp", 0.9))
    stamped = b"q 612 0 0 792 0 0 cm /I Do Q BT /F 12 Tf 72 20 Td (Page 1) Tj ET"

    assert load(make_pdf([stamped]), "a.pdf").text == "the whole letter, and the stamp"


@pytest.mark.usefixtures("with_ocr")
def test_the_parser_says_how_many_pages_it_recognises(request_for, monkeypatch) -> None:
    from app.ingestion.prepare import Listener, load

    said: list[int] = []

    class Told(Listener):
        def allow_pages(self, pages: int) -> None:
            said.append(pages)

    monkeypatch.setattr(ocr, "recognise", lambda image: ocr.Recognised("read", 0.9))
    load(request_for(SCAN), Told())

    assert said == [1]


def test_without_the_extra_the_hint_names_it(load, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "find_spec", lambda name: None)

    with pytest.raises(NoExtractableText) as caught:
        load(SCAN.read_bytes(), "a.pdf")
    assert "pip install 'footnote[ocr]'" in (caught.value.hint or "")


def test_recognition_can_be_switched_off(load) -> None:
    with pytest.raises(NoExtractableText):
        load(SCAN.read_bytes(), "a.pdf", limits={"ocr_page_seconds": 0})


@pytest.mark.shared
@pytest.mark.usefixtures("with_ocr")
def test_chinese_is_recognised(load) -> None:
    path = Path(__file__).parents[4] / "shared" / "files" / "pdf" / "Comp_zh_0.pdf"
    if not path.exists():
        pytest.skip("the shared files are not beside the project")
    import io

    import pypdfium2 as pdfium

    picture = io.BytesIO()
    pdfium.PdfDocument(path)[0].render(scale=2.5).to_pil().save(picture, "PNG")

    assert "大数据时代计算机网络信息安全防护策略探讨" in load(picture.getvalue(), "a.png").text


def test_without_the_extra_pages_that_are_pictures_are_named_with_the_hint(load, make_pdf, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "find_spec", lambda name: None)
    [notice] = load(make_pdf(["typed", None]), "a.pdf").warnings

    assert notice.code == "pages_without_text"
    assert notice.extra["pages"] == [2]
    assert "footnote[ocr]" in notice.extra["hint"]


@pytest.mark.usefixtures("with_ocr")
def test_no_more_pages_are_recognised_than_the_limit_says(load, make_pdf, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "recognise", lambda image: ocr.Recognised("read", 0.9))
    extraction = load(make_pdf([None, None, None]), "a.pdf", limits={"max_ocr_pages": 2})

    assert extraction.text == "read\n\nread"
    [notice] = extraction.warnings
    assert notice.extra["pages"] == [3]
    assert "FOOTNOTE_MAX_OCR_PAGES" in notice.extra["hint"]
