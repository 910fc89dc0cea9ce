from app.domain import Chunk, Extraction
from app.ingestion.rows import with_rows

TEXT = "Sales\n\ncaption\na: 1\na: 2; b: a long one\n\nCosts\n\na: 3\n\nremark"


def chunk_of(piece: str, path: tuple[str, ...]) -> Chunk:
    start = TEXT.index(piece)
    return Chunk(0, start, start + len(piece), piece, 1, heading_path=path)


def rows_of(piece: str, path: tuple[str, ...] = ("Sales",)) -> tuple[str, ...]:
    extraction = Extraction(
        text=TEXT,
        parser="xlsx",
        media_type="",
        source_type="xlsx",
        records=tuple(TEXT.index(record) for record in ("a: 1", "a: 2", "a: 3")),
        record_numbers=(3, 7, 2),
    )
    (found,) = with_rows(extraction, [chunk_of(piece, path)])
    return found.heading_path


def test_a_chunk_names_the_first_and_the_last_row_that_begin_in_it() -> None:
    assert rows_of("Sales\n\ncaption\na: 1\na: 2") == ("Sales", "rows 3-7")
    assert rows_of("a: 1") == ("Sales", "row 3")
    assert rows_of("Costs\n\na: 3", ("Costs",)) == ("Costs", "row 2")


def test_a_piece_of_a_long_row_names_its_row() -> None:
    assert rows_of("a long one") == ("Sales", "row 7")


def test_what_is_no_row_names_none() -> None:
    assert rows_of("caption") == ("Sales",)
    assert rows_of("remark") == ("Sales",)


def test_a_text_that_is_no_sheet_stays_as_it_is() -> None:
    extraction = Extraction(text="words", parser="text", media_type="text/plain", source_type="text")
    chunk = Chunk(0, 0, 5, "words", 1)

    assert list(with_rows(extraction, [chunk])) == [chunk]
