import pytest

from app.errors import DamagedDocument, EmptyDocument


def test_values_are_flattened_to_lines_and_objects_of_a_list_to_blocks(load) -> None:
    data = b'{"title": "Menu", "open": true, "none": null, "empty": "", "tags": ["a", "b"],'
    data += b'"dishes": [{"name": "soup", "price": 4.50}, {"name": "bread", "price": 12345678901234567890}]}'
    extraction = load(data, "a.json")

    assert extraction.title == "Menu"
    assert extraction.text == (
        "title: Menu\nopen: true\ntags[0]: a\ntags[1]: b\n\n"
        "dishes[0].name: soup\ndishes[0].price: 4.50\n\n"
        "dishes[1].name: bread\ndishes[1].price: 12345678901234567890"
    )


def test_a_value_alone_is_read(load) -> None:
    assert load(b'"only words"', "a.json").text == "only words"


def test_escaped_nul_and_lone_surrogates_go_with_a_warning(load) -> None:
    extraction = load(b'{"a": "x\\u0000y \\ud800 z"}', "a.json")

    assert extraction.text == "a: xy  z"
    assert [warning.code for warning in extraction.warnings] == ["characters_removed"]


def test_broken_json_is_damaged_and_the_place_is_named(load) -> None:
    with pytest.raises(DamagedDocument, match="line 2, column 6"):
        load(b'{"a": 1,\n "b" 2}', "a.json")


def test_endless_nesting_is_damaged(load) -> None:
    with pytest.raises(DamagedDocument):
        load(b"[" * 200_000 + b"]" * 200_000, "a.json")


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b'{"a": null, "b": ["", {}]}'])
def test_json_without_a_value_is_an_empty_document(load, data: bytes) -> None:
    with pytest.raises(EmptyDocument):
        load(data, "a.json")


def test_a_record_is_an_object_of_the_outermost_list(load) -> None:
    data = b'{"version": 2, "data": [{"id": 1, "tags": [{"name": "a"}, {"name": "b"}]}, {"tags": [{"name": "c"}]}]}'
    extraction = load(data, "a.json")

    assert [extraction.text[start:].split("\n")[0] for start in extraction.records] == [
        "data[0].id: 1",
        "data[1].tags[0].name: c",
    ]
    assert extraction.details["records"] == 2


def test_a_value_without_a_list_has_no_records(load) -> None:
    assert load(b'{"a": {"b": 1}}', "a.json").records == ()
