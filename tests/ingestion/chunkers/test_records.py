import pytest

from app.domain import ChunkingOptions, Extraction, Heading
from app.ingestion.chunkers.records import chunk_by_records


@pytest.fixture
def chunk(count_tokens):
    def cut(text, count=1, window=512, **members):
        described = {"parser": "test", "media_type": "text/plain", "source_type": "csv"} | members
        options = ChunkingOptions(strategy="records", records=count)
        return list(chunk_by_records(Extraction(text=text, **described), options, count_tokens, window))

    return cut


ROWS = "\n".join(f"name: row {n}; value: {n * 7}" for n in range(7))


def line_starts(text):
    return tuple(place for place in range(len(text)) if place == 0 or text[place - 1] == "\n")


@pytest.mark.parametrize("records", [line_starts(ROWS), ()])
def test_every_so_many_rows_are_a_chunk(chunk, records):
    chunks = chunk(ROWS, 3, records=records)
    assert [one.text.count("row") for one in chunks] == [3, 3, 1]
    assert "\n".join(one.text for one in chunks) == ROWS


def test_objects_of_a_list_are_records(chunk):
    text = "a: 1\nb: 2\n\na: 3\n\na: 4"
    assert [one.text for one in chunk(text, source_type="json")] == ["a: 1\nb: 2", "a: 3", "a: 4"]


def test_what_stands_before_the_first_record_joins_it(chunk):
    text = "Prices of 2026\n\na: 1\na: 2"
    chunks = chunk(text, records=(text.index("a: 1"), text.index("a: 2")))
    assert [one.text for one in chunks] == ["Prices of 2026\n\na: 1", "a: 2"]


def test_a_section_begins_a_new_chunk(chunk):
    text = "One\n\na: 1\na: 2\na: 3\n\nTwo\n\nb: 1"
    headings = (Heading(1, "One", 0), Heading(1, "Two", text.index("Two")))
    chunks = chunk(text, 2, headings=headings)
    assert [one.heading_path for one in chunks][-1] == ("Two",)
    assert not any("a:" in one.text and "b:" in one.text for one in chunks)


def test_records_above_the_window_are_parted_between_records_then_inside(chunk, count_tokens):
    text = "\n".join(f"name: {'x' * 30} {n}" for n in range(20))
    chunks = chunk(text, 20, window=64)
    assert all(count_tokens(one.text) <= 64 for one in chunks)
    assert all(one.text.startswith("name:") for one in chunks)
    long = chunk("name: " + "word " * 400, 1, window=64)
    assert all(count_tokens(one.text) <= 64 for one in long)


def test_a_text_without_records_is_cut_at_the_window(chunk):
    assert len(chunk("A paragraph.\n\nAnother.", source_type="text")) == 1
