import io

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, NoExtractableText
from app.ingestion.loaders import ocr

KINDS = {"png": "PNG", "jpg": "JPEG", "tiff": "TIFF", "webp": "WEBP", "bmp": "BMP"}


@pytest.fixture
def drawn():
    """Return a function that draws lines of words into a picture."""
    pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")
    from PIL import Image, ImageDraw, ImageFont

    def draw(*lines: str, mode: str = "RGB", paper="white", ink="black", turned: int = 0):
        picture = Image.new(mode, (640, 100 * len(lines) + 300), paper)
        pen = ImageDraw.Draw(picture)
        for number, words in enumerate(lines):
            pen.text((60, 100 + 100 * number), words, fill=ink, font=ImageFont.load_default(44))
        return picture.rotate(turned, expand=True)

    return draw


def saved(picture, kind: str, **options) -> bytes:
    file = io.BytesIO()
    picture.save(file, KINDS[kind], **options)
    return file.getvalue()


@pytest.mark.parametrize("ending", KINDS)
def test_each_kind_of_picture_reaches_recognition_as_it_was_drawn(load, drawn, monkeypatch, ending: str) -> None:
    seen = []
    monkeypatch.setattr(ocr, "recognise", lambda image: seen.append(image) or ocr.Recognised("read", 0.9))
    extraction = load(saved(drawn("Words", paper="red"), ending), f"a.{ending}")

    assert extraction.text == "read"
    assert extraction.details["ocr"]["pages"] == [{"page": 1, "confidence": 0.9}]
    assert seen[0].shape == (400, 640, 3)
    blue, green, red = (int(part) for part in seen[0][2, 2])
    assert red > 240 > 20 > max(blue, green)


@pytest.mark.parametrize("turned", [0, 90, 180])
def test_the_words_of_a_picture_are_read_however_it_lies(load, drawn, turned: int) -> None:
    extraction = load(saved(drawn("The invoice is due", "in thirty days", turned=turned), "png"), "a.png")

    assert " ".join(extraction.text.split()) == "The invoice is due in thirty days"
    assert extraction.source_type == "image"
    assert extraction.details["ocr"]["engine"].startswith("rapidocr 3.")
    assert 0.8 < extraction.details["ocr"]["confidence"] <= 1


@pytest.mark.parametrize(("ink", "paper"), [("white", 0), ("black", 255)])
def test_letters_on_nothing_are_read_on_what_they_stand_out_from(
    load, drawn, monkeypatch, ink: str, paper: int
) -> None:
    seen = []
    monkeypatch.setattr(ocr, "recognise", lambda image: seen.append(image) or ocr.Recognised("read", 0.9))
    load(saved(drawn("Words", mode="RGBA", paper=(0, 0, 0, 0), ink=ink), "png"), "a.png")

    assert (seen[0][2, 2] == paper).all()


def test_a_picture_of_sixteen_bits_keeps_its_letters(load, drawn, monkeypatch) -> None:
    import numpy as np
    from PIL import Image

    seen = []
    monkeypatch.setattr(ocr, "recognise", lambda image: seen.append(image) or ocr.Recognised("read", 0.9))
    grey = np.asarray(drawn("Words").convert("L")).astype(np.uint16)
    load(saved(Image.fromarray(grey * 200 + 10_000), "png"), "a.png")

    assert np.abs(seen[0][:, :, 0].astype(int) - grey).max() <= 1


def test_each_page_of_a_fax_is_a_page(load, drawn, monkeypatch) -> None:
    texts = iter(["First page", "", "Third page"])
    monkeypatch.setattr(ocr, "recognise", lambda image: ocr.Recognised(next(texts), 0.9))
    pages = [drawn("x"), drawn("y"), drawn("z")]
    extraction = load(saved(pages[0], "tiff", save_all=True, append_images=pages[1:]), "a.tiff")

    assert [extraction.text[page.start : page.end] for page in extraction.pages] == ["First page", "", "Third page"]
    assert extraction.coverage == 0.6667
    assert [(notice.code, notice.extra) for notice in extraction.warnings] == [("pages_without_text", {"pages": [2]})]


def test_a_picture_without_words_has_no_text(load, drawn, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "recognise", lambda image: ocr.NOTHING)

    with pytest.raises(NoExtractableText, match="no text was recognised"):
        load(saved(drawn(" "), "png"), "a.png")


def test_too_many_pages_are_refused(load, drawn) -> None:
    fax = saved(drawn("One"), "tiff", save_all=True, append_images=[drawn("Two")])

    with pytest.raises(DocumentLimitExceeded, match="2 pages, 1 are allowed"):
        load(fax, "a.tiff", limits={"max_ocr_pages": 1})


def test_a_picture_that_is_cut_off_is_damaged(load, drawn) -> None:
    data = saved(drawn("The invoice is due"), "png")

    with pytest.raises(DamagedDocument):
        load(data[: len(data) // 2], "a.png")


def test_a_picture_of_endless_size_is_refused(load, drawn, monkeypatch) -> None:
    monkeypatch.setattr("app.ingestion.loaders.image._LARGEST_PIXELS", 1000)

    with pytest.raises(DocumentLimitExceeded, match="pixels"):
        load(saved(drawn("The invoice is due"), "png"), "a.png")


def test_without_the_extra_the_hint_names_it(load, monkeypatch) -> None:
    monkeypatch.setattr(ocr, "find_spec", lambda name: None)

    with pytest.raises(NoExtractableText) as caught:
        load(b"\x89PNG\r\n\x1a\n" + bytes(50), "a.png")
    assert "pip install 'footnote[ocr]'" in (caught.value.hint or "")
