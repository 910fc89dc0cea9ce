import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.document_rules import check_document_id, check_metadata, id_from_filename
from app.errors import InvalidRequest
from app.settings import Settings

SETTINGS = Settings(max_metadata_bytes=200)


@pytest.mark.parametrize("document_id", ["a", "leave 2026", "文档", "a.b", "...", "x" * 256, "%2F", "a\\b"])
def test_an_id_may_hold_what_a_path_can_carry(document_id: str) -> None:
    assert check_document_id(document_id, "/id") == document_id


@pytest.mark.parametrize("document_id", ["", ".", "..", "a/b", "a\nb", "a\0", "x" * 257, "\x7f", "\ud800"])
def test_an_id_that_no_path_can_carry_is_refused_at_its_place(document_id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_document_id(document_id, "/documents/3/id")
    assert refused.value.errors[0].pointer == "/documents/3/id"


@given(st.text(max_size=400))
def test_every_file_name_gives_an_id_that_is_allowed(filename: str) -> None:
    check_document_id(id_from_filename(filename), "")


@pytest.mark.parametrize(
    ("filename", "expected"),
    [("report.pdf", "report.pdf"), ("C:\\docs\\a b.txt", "a b.txt"), ("../../etc/passwd", "passwd"), ("..", "file")],
)
def test_an_id_is_the_last_part_of_a_file_name(filename: str, expected: str) -> None:
    assert id_from_filename(filename) == expected


@pytest.mark.parametrize(
    ("metadata", "pointer", "code"),
    [
        ({"a": {"b": [0, 2**63]}}, "/metadata/a/b/1", "out_of_range"),
        ({"$created_at": 1}, "/metadata/$created_at", "reserved_name"),
        ({"a/b": {"c~d": 2**70}}, "/metadata/a~1b/c~0d", "out_of_range"),
        ({"a": "x" * 300}, "/metadata", "too_large"),
    ],
)
def test_metadata_that_cannot_be_kept_is_pointed_at(metadata: dict[str, object], pointer: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_metadata(metadata, SETTINGS)
    assert [(error.pointer, error.code) for error in refused.value.errors] == [(pointer, code)]


def test_metadata_has_a_bounded_depth() -> None:
    nested: object = 1
    for _ in range(20):
        nested = {"a": nested}
    with pytest.raises(InvalidRequest) as refused:
        check_metadata({"a": nested}, SETTINGS)
    assert refused.value.errors[0].code == "too_deep"
