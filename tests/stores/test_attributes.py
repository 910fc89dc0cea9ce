from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.stores.attributes import Kind, clean, document_attributes, moment, whole_list

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def of(metadata: dict[str, object]) -> set[tuple[str, Kind, object]]:
    found = document_attributes(metadata, document_id="d", source_type="text", created_at=NOW, updated_at=NOW)
    return {attribute for attribute in found if not attribute[0].startswith("$")}


def test_nested_objects_become_dotted_fields_and_null_is_missing() -> None:
    assert of({"author": {"name": "Ada", "born": {"year": 1815}, "none": None}, "empty": {}}) == {
        ("author.name", Kind.TEXT, "Ada"),
        ("author.born.year", Kind.NUMBER, 1815),
    }


def test_a_list_has_a_row_for_the_whole_and_one_for_each_different_element() -> None:
    rows = of({"tags": ["a", 1, True, "a", None, {"deep": 1}]})
    assert {row for row in rows if row[1] is not Kind.LIST} == {
        ("tags", Kind.ITEM_TEXT, "a"),
        ("tags", Kind.ITEM_NUMBER, 1),
        ("tags", Kind.ITEM_BOOLEAN, 1),
    }
    assert len(of({"tags": []})) == 1


def test_a_date_has_its_text_and_its_moment() -> None:
    assert of({"when": "1970-01-02"}) == {
        ("when", Kind.DATE_TEXT, "1970-01-02"),
        ("when", Kind.DATE, 86_400_000_000),
    }


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01t01:00:00.5+01:00", 500_000),
        ("1970-01-01 00:00:00.123456789-00:00", 123_456),
        ("1969-12-31T23:59:59", -1_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000),
    ],
)
def test_rfc_3339_dates_and_times_are_moments(text: str, microseconds: int) -> None:
    assert moment(text) == microseconds


NO_DATES = ["", "2024", "2024-1-1", "20240101", "2024-W01-1", "2024-02-30", "0000-01-01", " 2024-01-01", "2024-01-01\n"]
NO_DATES += ["2024-01-01T25:00:00Z", "2024-01-01T10:00Z", "2024-01-01T10:00:00+25:00", "２０２４-01-01"]


@pytest.mark.parametrize("text", NO_DATES)
def test_anything_else_is_text(text: str) -> None:
    assert moment(text) is None


@given(st.datetimes(timezones=st.timezones()))
def test_every_time_with_an_offset_is_read_exactly(when: datetime) -> None:
    offset = when.utcoffset()
    if offset is not None and offset.seconds % 60 == 0:
        assert moment(when.isoformat()) == (when - datetime(1970, 1, 1, tzinfo=UTC)) // (NOW - NOW).resolution


def test_lists_are_equal_by_value_and_type() -> None:
    assert whole_list([1, "a", True]) == whole_list((1.0, "a", True))
    different = [[], [1], [True], ["1"], ["1", "2"], ["1,2"], [0.5], [[1]], [None]]
    assert (
        len({whole_list(values) for values in different}) == len(different) - 1
    )  # Nested ones equal no filter's value.


@given(st.text(st.characters(codec=None)))
def test_clean_text_can_be_stored_and_keeps_all_else(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode().decode() == cleaned
    assert "\0" not in cleaned
    assert [c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff"] == list(cleaned)
