"""Every loader: canonical text with true places, an error that says why, and the text that the tables name."""

import json
import unicodedata
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.domain import ChunkingOptions, Extraction
from app.errors import (
    EmptyDocument,
    FootnoteError,
    NoExtractableText,
    PasswordRequired,
    UnsupportedMediaType,
    UnusableDocument,
)
from app.inference.port import TokenCounterSpec
from app.ingestion.port import LoadLimits, PrepareRequest
from app.ingestion.prepare import load
from app.ingestion.registry import LOADERS

SAMPLES = Path(__file__).parents[1] / "files"
SHARED = Path(__file__).parents[3] / "shared" / "files"
READ_FOLDERS = ("pdf", "docx", "html", "md", "text", "json", "csv", "epub", "eml", "pptx", "xlsx", "other")
LIMITS = LoadLimits(
    max_pages=5000,
    max_characters=100_000_000,
    max_chunks=200_000,
    parse_timeout_seconds=120,
    parse_memory_bytes=2_000_000_000,
)


def rows(table: Path, *, as_lines: bool) -> list[dict[str, Any]]:
    if not table.exists():
        return []
    text = table.read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if as_lines else json.loads(text)


OWN = rows(SAMPLES / "samples.json", as_lines=False)
INDEX = rows(SHARED / "index.jsonl", as_lines=True)
READ = [row for row in INDEX if row["path"].split("/")[0] in READ_FOLDERS and not row["path"].endswith(".zip")]
NOT_READ = [row for row in INDEX if row["path"].endswith((".doc", ".zip"))]


def load_file(path: Path, password: str | None = None, limits: LoadLimits = LIMITS) -> Extraction:
    request = PrepareRequest(
        path=path,
        declared=None,
        filename=path.name,
        password=password,
        title=None,
        chunking=ChunkingOptions(),
        token_counter=TokenCounterSpec("estimate"),
        window_tokens=512,
        limits=limits,
    )
    return load(request)


def folded(text: str) -> str:
    return " ".join(text.replace("\u00ad", "").split())


def check_is_well_formed(extraction: Extraction) -> None:
    text = extraction.text
    assert text.strip()
    assert unicodedata.is_normalized("NFC", text)
    assert not any(letter in "\0\r\ufffd\ufffe" or "\ud800" <= letter <= "\udfff" for letter in set(text))
    assert extraction.media_type in LOADERS
    assert 0 < extraction.coverage <= 1
    for first, second in pairwise(extraction.pages):
        assert first.start <= first.end <= second.start <= second.end <= len(text)
        assert second.number == first.number + 1
    for heading in extraction.headings:
        assert 1 <= heading.level <= 6
        assert heading.title
        assert 0 <= heading.start < len(text)
    starts = [heading.start for heading in extraction.headings]
    assert starts == sorted(starts)
    json.dumps([extraction.report(), dict(extraction.metadata), [w.as_json() for w in extraction.warnings]])


def check_row(row: dict[str, Any], folder: Path) -> None:
    """Load a table's file and compare with what its row says must and must not come out."""
    path, password = folder / row["path"], row["password"]
    if row["expect"] == "error":
        with pytest.raises(UnusableDocument):
            load_file(path)
        return
    if row["expect"] == "ocr":
        with pytest.raises(NoExtractableText) as caught:
            load_file(path, limits=replace(LIMITS, ocr_page_seconds=0))
        assert "FOOTNOTE_OCR_PAGE_SECONDS" in (caught.value.hint or "")
        pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")
    if row["expect"] == "password":
        for wrong in (None, "not the password"):
            with pytest.raises(PasswordRequired):
                load_file(path, wrong)
    extraction = load_file(path, password)
    check_is_well_formed(extraction)
    text = folded(extraction.text)
    for wanted in row["must"]:
        assert folded(wanted) in text
    for unwanted in row["must_not"]:
        assert folded(unwanted) not in text


@pytest.mark.parametrize("row", OWN, ids=lambda row: row["path"])
def test_each_sample_gives_the_text_that_its_row_names(row: dict[str, Any]) -> None:
    check_row(row, SAMPLES)


def test_each_sample_names_its_origin_and_licence() -> None:
    listed = {row["path"] for row in OWN if row["origin"] and row["licence"]}
    present = {
        str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*") if path.parent != SAMPLES and path.is_file()
    }

    assert present == listed


@pytest.mark.parametrize("media_type", LOADERS)
@pytest.mark.parametrize("data", [b" ", b"\n\n", "\u3000\u200b".encode(), b"\x00\x01\x02"], ids=repr)
def test_no_loader_makes_a_success_of_nothing(media_type: str, data: bytes, tmp_path: Path) -> None:
    from app.ingestion.port import Source

    path = tmp_path / "nothing"
    path.write_bytes(data)

    with pytest.raises(UnusableDocument):
        LOADERS[media_type](Source(path, media_type, None, None, None, LIMITS))


@pytest.mark.parametrize("row", READ, ids=lambda row: row["path"])
@pytest.mark.shared
def test_each_shared_file_gives_the_text_that_its_row_names(row: dict[str, Any]) -> None:
    check_row(row, SHARED)


@pytest.mark.parametrize("row", NOT_READ, ids=lambda row: row["path"])
@pytest.mark.shared
def test_each_shared_file_of_a_kind_not_read_is_refused_by_name(row: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedMediaType) as caught:
        load_file(SHARED / row["path"])
    assert caught.value.hint


@pytest.mark.shared
def test_the_shared_files_are_beside_the_project() -> None:
    if not INDEX:
        pytest.skip("the shared files are not beside the project")
    assert len(READ) > 50


@pytest.mark.parametrize("row", OWN[::3], ids=lambda row: row["path"])
@pytest.mark.parametrize("keep", [0.2, 0.6, 0.95])
def test_a_file_that_is_cut_off_is_read_or_refused_with_a_reason(
    row: dict[str, Any], keep: float, tmp_path: Path
) -> None:
    data = (SAMPLES / row["path"]).read_bytes()
    path = tmp_path / Path(row["path"]).name
    path.write_bytes(data[: int(len(data) * keep)])

    try:
        check_is_well_formed(load_file(path, row["password"]))
    except FootnoteError as error:
        assert error.status in (415, 422), error  # noqa: PT017 - both ends are right


def test_an_empty_file_is_an_empty_document(tmp_path: Path) -> None:
    path = tmp_path / "empty.pdf"
    path.touch()

    with pytest.raises(EmptyDocument):
        load_file(path)
