from pathlib import Path

import pytest

from app.errors import NotFound
from app.ingestion.folder import scan


def test_a_folder_is_walked_and_what_is_skipped_is_said(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "a.md").write_text("# A")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / ".hidden").write_text("secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "large.txt").write_text("x" * 101)
    found = scan([tmp_path], max_bytes=100)
    assert [file.path for file in found.files] == ["b.txt", "guides/a.md"]
    reasons = {skipped.file.name: skipped.reason for skipped in found.skipped}
    assert set(reasons) == {".hidden", ".git", "empty.txt", "large.txt"}
    assert "FOOTNOTE_MAX_UPLOAD_BYTES (100)" in reasons["large.txt"]


def test_a_path_keeps_its_document_id_and_two_paths_never_share_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "报告 1.md").write_text(name)
    first, second = (file.document_id for file in scan([tmp_path], max_bytes=100).files)
    assert first != second
    assert "/" not in first
    assert first.startswith("报告-1.md-")
    assert [first, second] == [file.document_id for file in scan([tmp_path], max_bytes=100).files]


def test_a_single_file_is_taken_and_its_folder_is_not_a_source_to_sync(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("1")
    found = scan([file], max_bytes=100)
    assert [each.path for each in found.files] == ["one.txt"]
    assert found.sources == ()


def test_a_link_to_a_folder_ends_no_walk(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = scan([tmp_path], max_bytes=100)
    assert [file.path for file in found.files] == ["a.txt"]
    assert [skipped.reason for skipped in found.skipped] == ["a link to a folder"]


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        scan([tmp_path / "nothing"], max_bytes=100)
