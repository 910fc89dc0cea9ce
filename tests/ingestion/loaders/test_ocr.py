import numpy as np
import pytest

from app.ingestion.loaders import ocr
from app.ingestion.loaders.ocr_order import Line

IMAGE = np.full((400, 640, 3), 255, dtype=np.uint8)


def upright(text: str, confidence: float) -> Line:
    return Line(0, 0, 200, 20, text, confidence)


def on_its_side(text: str, confidence: float) -> Line:
    return Line(0, 0, 20, 200, text, confidence)


@pytest.fixture
def reading(monkeypatch):
    """Let each turn (in quarters, against the clock) be read as given; return which turns were tried."""

    def script(**by_turn: Line) -> list[int]:
        tried: list[int] = []

        def read(image: ocr.Image, turns: int) -> ocr._Reading:
            tried.append(turns)
            line = by_turn.get(f"turn_{turns}")
            return ocr._Reading([line] if line else [])

        monkeypatch.setattr(ocr, "_read", read)
        return tried

    return script


def test_a_page_that_is_read_well_is_read_once(reading) -> None:
    tried = reading(turn_0=upright("the words", 0.97))

    assert ocr.recognise(IMAGE) == ocr.Recognised("the words", 0.97)
    assert tried == [0]


def test_an_empty_page_is_read_once(reading) -> None:
    tried = reading()

    assert ocr.recognise(IMAGE) == ocr.NOTHING
    assert tried == [0]


def test_a_page_on_its_side_is_turned_until_it_is_read_well(reading) -> None:
    tried = reading(
        turn_0=on_its_side("t e", 0.7), turn_3=upright("sp.iom eht", 0.6), turn_1=upright("the words", 0.98)
    )

    assert ocr.recognise(IMAGE).text == "the words"
    assert tried == [0, 3, 1]


def test_a_page_upside_down_is_turned(reading) -> None:
    reading(turn_0=upright("spJom", 0.6), turn_2=upright("the words", 0.98))

    assert ocr.recognise(IMAGE).text == "the words"


def test_vertical_writing_stays_as_it_is(reading) -> None:
    reading(turn_0=on_its_side("初めの行です", 0.9), turn_3=upright("初", 0.4), turn_1=upright("初", 0.4))

    assert ocr.recognise(IMAGE).text == "初めの行です"


def test_a_page_that_is_badly_printed_keeps_its_best_reading(reading) -> None:
    reading(turn_0=upright("faint words", 0.7), turn_2=upright("sp.i", 0.55))

    assert ocr.recognise(IMAGE) == ocr.Recognised("faint words", 0.7)


def test_the_models_are_never_downloaded(monkeypatch) -> None:
    pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")
    from rapidocr.utils.download_file import DownloadFile

    def refuse(*_: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(DownloadFile, "run", refuse)
    ocr._engine.cache_clear()

    assert ocr.recognise(IMAGE) == ocr.NOTHING
