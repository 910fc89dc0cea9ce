import pytest

from app.errors import DamagedDocument


def test_each_line_is_a_block(load) -> None:
    extraction = load('{"q": "客户", "n": {"m": 1}}\r\n\r\n{"q": "b"}\n'.encode(), "a.jsonl")

    assert extraction.text == "q: 客户\nn.m: 1\n\nq: b"
    assert extraction.report()["records"] == 2


def test_a_few_broken_lines_are_left_out_and_named(load) -> None:
    lines = ['{"n": "a"}'] * 20
    lines[6] = '{"n": '
    extraction = load("\n".join(lines).encode(), "a.ndjson")

    assert extraction.report()["records"] == 19
    assert [warning.as_json()["lines"] for warning in extraction.warnings] == [[7]]


def test_many_broken_lines_are_damage(load) -> None:
    with pytest.raises(DamagedDocument, match="2 of 4 lines"):
        load(b'{"a": 1}\n{"a": 2}\nx\ny\n', "a.jsonl")


def test_the_first_broken_line_is_named_by_its_number(load) -> None:
    lines = [b'{"a": %d}' % number for number in range(20)]
    lines[6] = b'{"a": '
    extraction = load(b"\n".join(lines), "a.jsonl")

    assert "line 7" in extraction.warnings[0].detail
    assert len(extraction.records) == 19


def test_values_over_several_lines_are_read_one_after_the_other(load) -> None:
    extraction = load(b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n', "a.jsonl")

    assert extraction.text == "a: 1\n\na: 2"
    assert extraction.records == (0, 6)


def test_record_separators_are_no_part_of_a_value(load) -> None:
    assert load(b'\x1e{"a": 1}\n\x1e{"a": 2}\n', "a.jsonl").text == "a: 1\n\na: 2"
