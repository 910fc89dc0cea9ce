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
