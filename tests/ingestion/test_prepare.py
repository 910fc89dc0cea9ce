from pathlib import Path

import pytest

from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.prepare import prepare


def test_a_document_is_loaded_cut_and_told_where_its_chunks_stand(request_for, tmp_path: Path) -> None:
    path = tmp_path / "policy.md"
    path.write_text("---\ntitle: Leave\nteam: hr\n---\n# Parents\n\n" + "Each parent may take days. " * 100)
    prepared = prepare(request_for(path))

    assert prepared.extraction.metadata == {"team": "hr"}
    assert len(prepared.chunks) > 1
    assert [chunk.ordinal for chunk in prepared.chunks] == list(range(len(prepared.chunks)))
    for chunk in prepared.chunks:
        assert chunk.text == prepared.extraction.text[chunk.start : chunk.end]
        assert "Leave" in chunk.context
    assert set(prepared.timings_ms) == {"load", "clean", "chunk"}


def test_chunks_of_a_pdf_know_their_pages_and_those_of_a_text_do_not(request_for, make_pdf, tmp_path: Path) -> None:
    pdf, text = tmp_path / "a.pdf", tmp_path / "a.txt"
    pdf.write_bytes(make_pdf(["First. " * 30, "Second. " * 30]))
    text.write_text("Text. " * 30)

    assert prepare(request_for(pdf)).chunks[0].page_start == 1
    assert prepare(request_for(text)).chunks[0].page_start is None


def test_a_renamed_file_is_read_as_what_it_is_with_a_warning(request_for, make_pdf, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(make_pdf(["Hello"]))
    extraction = prepare(request_for(path)).extraction

    assert (extraction.text, extraction.parser) == ("Hello", "pdfium")
    assert [warning.code for warning in extraction.warnings] == ["content_type_mismatch"]


def test_more_chunks_than_allowed_name_the_setting(request_for, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("One sentence of a long text. " * 2000)

    with pytest.raises(DocumentLimitExceeded) as caught:
        prepare(request_for(path, limits={"max_chunks": 3}))
    assert "FOOTNOTE_MAX_CHUNKS" in (caught.value.hint or "")


def test_white_space_is_an_empty_document(request_for, tmp_path: Path) -> None:
    path = tmp_path / "blank.md"
    path.write_text("\n \n")

    with pytest.raises(EmptyDocument):
        prepare(request_for(path))
