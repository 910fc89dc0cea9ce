from collections.abc import Sequence
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path
from typing import Self

import pytest

from app.bootstrap import build_services
from app.errors import NotFound
from app.ingestion.collections import create_collection
from app.ingestion.folder import FileInWork, FolderIngest, scan
from app.settings import Settings
from app.worker import Worker


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


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []
        self.in_work: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __call__(self, done: int, total: int, in_work: Sequence[FileInWork] = ()) -> None:
        self.counts.append((done, total))
        self.in_work.update(each.path for each in in_work)


def test_progress_grows_to_the_last_file_and_a_failed_one_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(6):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"text {number}")
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    with closing(build_services(Settings(data=tmp_path / "data", embedder="hashed"))) as services:
        made = create_collection(services.ingestion, "c", title=None, description=None, settings={})
        folder = FolderIngest(services.ingestion, services.jobs, made, in_flight=2)
        found = scan([tmp_path / "docs"], max_bytes=10_000)
        heard = Heard()
        with Worker(services, warms_up=False).running():
            outcome = folder.run(found, heard)
            again = folder.run(found, Heard())
    assert heard.counts == sorted(heard.counts)
    assert heard.counts[-1] == (7, 7)
    assert heard.in_work <= {file.path for file in found.files}
    assert (outcome.counts["created"], outcome.counts["failed"]) == (6, 1)
    assert [failure.path for failure in outcome.failures] == [str(tmp_path / "docs" / "broken.pdf")]
    assert again.counts["unchanged"] == 6


def test_what_came_inside_a_mail_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    message = EmailMessage()
    message.set_content("See below.")
    message.add_attachment("bicycle", filename="good.txt")
    message.add_attachment(b"%PDF-1.4 and no more", maintype="application", subtype="pdf", filename="bad.pdf")
    (tmp_path / "docs" / "a.eml").write_bytes(bytes(message))
    with closing(build_services(Settings(data=tmp_path / "data", embedder="hashed"))) as services:
        made = create_collection(services.ingestion, "c", title=None, description=None, settings={})
        with Worker(services, warms_up=False).running():
            folder = FolderIngest(services.ingestion, services.jobs, made, sync=True)
            outcome = folder.run(scan([tmp_path / "docs"], max_bytes=10_000), Heard())
            (tmp_path / "docs" / "a.eml").unlink()
            folder.run(scan([tmp_path / "docs"], max_bytes=10_000), Heard())
            with services.opened.get(made.id) as opened:
                left = opened.store.list_documents(None, limit=10, cursor=None).data

    assert (outcome.counts["created"], outcome.counts["failed"]) == (2, 1)
    assert outcome.failures[0].path.endswith("~bad.pdf")
    assert left == ()
