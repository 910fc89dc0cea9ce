import hashlib
import os
from pathlib import Path

import pytest

from app.errors import NotFound
from app.ingestion.sources import ADOPTION_GRACE_SECONDS, Originals


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "originals"
    made.mkdir()
    return made


def age(file: Path) -> None:
    old = file.stat().st_mtime - 2 * ADOPTION_GRACE_SECONDS
    os.utime(file, (old, old))


def test_bytes_are_kept_under_their_hash(folder: Path) -> None:
    stored = Originals(folder).write(b"hello")
    assert stored.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert stored.size == 5
    assert Originals(folder).path(stored.sha256).read_bytes() == b"hello"
    assert [path.name for path in folder.iterdir()] == [stored.sha256]


def test_an_adopted_file_leaves_its_old_place(folder: Path, tmp_path: Path) -> None:
    spooled = tmp_path / "upload"
    spooled.write_bytes(b"x" * 3_000_000)
    stored = Originals(folder).adopt(spooled)
    assert not spooled.exists()
    assert (folder / stored.sha256).stat().st_size == 3_000_000


def test_a_copied_file_stays_and_equal_bytes_are_stored_once(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"same")
    first = Originals(folder).copy(file)
    second = Originals(folder).copy(file)
    assert first == second
    assert file.read_bytes() == b"same"
    assert len(list(folder.iterdir())) == 1


def test_nothing_is_written_into_a_deleted_collection(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Originals(tmp_path / "gone" / "originals").write(b"late")
    assert not (tmp_path / "gone").exists()


def test_a_collection_that_is_deleted_while_bytes_are_written_or_swept_is_said(folder: Path, tmp_path: Path) -> None:
    spooled = tmp_path / "upload"
    spooled.write_bytes(b"hello")
    gone = tmp_path / "gone"

    def delete(_: int) -> None:
        folder.rename(gone)

    originals = Originals(folder, delete)
    with pytest.raises(NotFound):
        originals.write(b"hello")
    gone.rename(folder)
    with pytest.raises(NotFound):
        originals.adopt(spooled)
    with pytest.raises(NotFound):
        originals.remove_unless(lambda _: False)


def test_a_missing_original_is_said(folder: Path) -> None:
    with pytest.raises(NotFound):
        Originals(folder).path("0" * 64)


def test_only_old_bytes_that_nothing_needs_are_removed(folder: Path) -> None:
    originals = Originals(folder)
    needed, unneeded, fresh = (originals.write(data).sha256 for data in (b"needed", b"unneeded", b"fresh"))
    age(folder / needed)
    age(folder / unneeded)
    assert originals.remove_unless({needed}.__contains__) == 1
    assert {path.name for path in folder.iterdir()} == {needed, fresh}


def test_bytes_that_were_just_sent_again_are_not_removed(folder: Path) -> None:
    originals = Originals(folder)
    stored = originals.write(b"again")
    age(folder / stored.sha256)
    originals.write(b"again")
    assert originals.remove_unless(lambda _: False, [stored.sha256]) == 0


def test_bytes_that_another_process_removes_at_the_same_moment_are_not_counted(folder: Path) -> None:
    originals = Originals(folder)
    mine, theirs = (originals.write(data).sha256 for data in (b"mine", b"theirs"))
    for name in (mine, theirs):
        os.utime(folder / name, (0, 0))

    def is_needed(name: str) -> bool:
        if name == theirs:
            (folder / name).unlink()
        return False

    assert originals.remove_unless(is_needed) == 1
    assert originals.names() == []
