from app.ingestion.loaders.ocr_order import Line, in_reading_order


def line(text: str, left: float, top: float, width: float = 100, height: float = 10) -> Line:
    return Line(left, top, left + width, top + height, text, 1.0)


def test_nothing_reads_as_nothing() -> None:
    assert in_reading_order([]) == ""


def test_rows_are_lines_and_wide_white_begins_a_paragraph() -> None:
    lines = [line("second", 0, 13), line("first", 0, 0), line("after white", 0, 60)]

    assert in_reading_order(lines) == "first\nsecond\n\nafter white"


def test_one_column_is_read_after_another() -> None:
    left = [line(f"left {number}", 0, 40 + 13 * number) for number in range(3)]
    right = [line(f"right {number}", 140, 40 + 13 * number) for number in range(3)]
    lines = [line("A title over both columns", 0, 0, 240), *right, *left]

    assert in_reading_order(lines) == (
        "A title over both columns\n\nleft 0\nleft 1\nleft 2\n\nright 0\nright 1\nright 2"
    )


def test_pieces_of_a_row_are_joined_and_cells_are_told_apart() -> None:
    assert in_reading_order([line("one", 0, 0), line("two", 105, 1)]) == "one two"
    assert in_reading_order([line("Price", 0, 0), line("450", 300, 1)]) == "Price | 450"


def test_vertical_writing_runs_from_the_right() -> None:
    lines = [line("次の行", 0, 0, 10, 200), line("初めの行", 15, 0, 10, 200)]

    assert in_reading_order(lines) == "初めの行\n次の行"
