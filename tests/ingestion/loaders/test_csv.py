import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_each_record_repeats_the_head_whatever_the_delimiter(load, delimiter: str) -> None:
    rows = [["name", "city", "note"], ["Ann", "Bonn", "a, b; c | d"], ["Bo", "", "two\nlines"]]
    text = "\r\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)

    assert load(text.encode(), "a.csv").text == "name: Ann; city: Bonn; note: a, b; c | d\nname: Bo; note: two lines"


def test_a_head_given_twice_is_told_apart(load) -> None:
    assert load(b"no,no,\nA,B,C\n", "a.csv").text.startswith("no: A; no (2): B") is False
    assert load(b"no,no,x\nA,B,C\n", "a.csv").text == "no: A; no (2): B; x: C"


def test_a_row_that_does_not_fit_the_head_stays_as_it_is_written(load) -> None:
    assert load(b"x,y\n1,2\na,b,c\n", "a.csv").text == "x: 1; y: 2\na,b,c"


def test_rows_without_a_head_stay_as_they_are_written(load) -> None:
    assert load(b"1,2020-01-05,3.5\n2,2020-01-06,4\n", "a.csv").text == "1,2020-01-05,3.5\n2,2020-01-06,4"


def test_years_may_be_heads(load) -> None:
    assert load(b"country,2020,2021\nFinland,1,2\n", "a.csv").text == "country: Finland; 2020: 1; 2021: 2"


def test_a_title_above_the_head_is_a_line(load) -> None:
    assert load(b"Report,,\nname,city,zip\nAnn,Bonn,53111\n", "a.csv").text == (
        "Report\nname: Ann; city: Bonn; zip: 53111"
    )


def test_one_column_is_read(load) -> None:
    assert load(b"name\nAnn\nBo\n", "a.csv").text == "name: Ann\nname: Bo"


def test_a_head_alone_is_text(load) -> None:
    assert load(b"name,city\n", "a.csv").text == "name,city"


def test_a_named_delimiter_is_used(load) -> None:
    assert load(b"sep=^\na^b\n1,1^2\n", "a.csv").text == "a: 1,1; b: 2"


def test_a_quotation_mark_that_never_closes_does_not_swallow_the_rest(load) -> None:
    rows = "".join(f"{number},word{number}\n" for number in range(500))
    text = load(('size,name\n5,"oops\n' + rows).encode(), "a.csv").text

    assert text.splitlines()[-1] == "size: 499; name: word499"


def test_any_charset_is_read(load) -> None:
    extraction = load("名前,住所\n髙橋淳,名古屋\n".encode("cp932"), "a.csv")

    assert (extraction.text, extraction.encoding) == ("名前: 髙橋淳; 住所: 名古屋", "cp932")


def test_tabs_come_first_in_a_tsv(load) -> None:
    assert load(b"a\tb, c\n1\t2, 3\n", "a.tsv").text == "a: 1; b, c: 2, 3"


def test_decimal_commas_are_no_delimiters(load) -> None:
    rows = "".join(f"{number},5;{number},25\n" for number in range(300))

    assert load(("width;height\n" + rows).encode(), "a.csv").text.startswith("width: 0,5; height: 0,25\n")


def test_semicolons_within_a_column_are_no_delimiters(load) -> None:
    rows = "".join(f"{number},red; blue,x\n" for number in range(300))

    assert load(("id,colours,note\n" + rows).encode(), "a.csv").text.startswith("id: 0; colours: red; blue; note: x\n")


def test_a_byte_order_mark_is_no_part_of_the_first_column(load) -> None:
    assert load("\ufeffname;city\nAnn;Bonn\n".encode(), "a.csv").text == "name: Ann; city: Bonn"


def test_each_record_is_placed_and_ragged_rows_are_named_by_their_lines(load) -> None:
    extraction = load(b'a,b,c\n1,2,3\n"x\ny",2\n4,5,6,7\n8,9,10,\n', "a.csv")

    assert [extraction.text[start:].split("\n")[0] for start in extraction.records] == [
        "a: 1; b: 2; c: 3",
        "a: x y; b: 2",
        "4,5,6,7",
        "a: 8; b: 9; c: 10",
    ]
    assert [(notice.code, notice.extra) for notice in extraction.warnings] == [
        ("ragged_rows", {"count": 2, "lines": [3, 5]})
    ]
    assert extraction.details["delimiter"] == ","


_CELLS = st.text(st.sampled_from('abc 客户é,;|\t"\n0-'), max_size=12).map(lambda cell: " ".join(cell.split()))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(_CELLS, min_size=3, max_size=3), min_size=3, max_size=8), delimiter=st.sampled_from(",;\t|")
)
def test_every_cell_comes_out_under_its_head_whatever_is_in_it(load, rows: list[list[str]], delimiter: str) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["first", "second", "third"], *rows])
    filled = [row for row in rows if any(row)]
    if not filled:
        return
    extraction = load(written.getvalue().encode(), "a.csv")

    heads = ("first", "second", "third")
    assert extraction.text.split("\n") == [
        "; ".join(f"{head}: {cell}" for head, cell in zip(heads, row, strict=True) if cell) for row in filled
    ]
    assert len(extraction.records) == len(filled)


def test_each_record_knows_its_line_for_the_readers_of_a_citation(load) -> None:
    extraction = load(b"name,days\nann,3\n\nbob,4\n", "a.csv")

    assert extraction.record_numbers == (2, 4)
