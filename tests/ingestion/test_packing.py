import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.errors import FootnoteError, NotFound, Unavailable
from app.ingestion.packing import pack_store


class VanishingStore:
    """A store whose collection another process deletes when it is asked for a copy."""

    def __init__(self, source: Path, error: FootnoteError | None) -> None:
        self._source, self._error = source, error

    def snapshot(self, target: Path, *, without_work: bool) -> None:
        shutil.rmtree(self._source)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("error", [None, Unavailable("cannot be read", code="store_unavailable")])
def test_a_collection_that_is_deleted_while_it_is_packed_is_not_found(tmp_path: Path, error: Any) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    (source / "originals").mkdir(parents=True)
    folder.mkdir()
    with pytest.raises(NotFound):
        pack_store(VanishingStore(source, error), source, folder, without_work=True)  # type: ignore[arg-type]


def test_a_collection_that_is_there_and_cannot_be_read_is_no_deleted_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError):
        pack_store(None, tmp_path, tmp_path / "folder", without_work=True)  # type: ignore[arg-type]


class CopiedStore:
    """A store whose copy is a file of one byte."""

    def snapshot(self, target: Path, *, without_work: bool) -> None:
        target.write_bytes(b"1")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV])
def test_where_files_cannot_be_linked_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    (source / "originals").mkdir(parents=True)
    folder.mkdir()
    (source / "originals" / "a").write_bytes(b"bytes")
    (source / "originals" / ".draft").write_bytes(b"not yet")

    def refuse(*_: object) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr("os.link", refuse)
    pack_store(CopiedStore(), source, folder, without_work=True)  # type: ignore[arg-type]
    assert [path.name for path in (folder / "originals").iterdir()] == ["a"]
    assert (folder / "originals" / "a").read_bytes() == b"bytes"


def test_a_full_disk_is_no_reason_to_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    (source / "originals").mkdir(parents=True)
    folder.mkdir()
    (source / "originals" / "a").write_bytes(b"bytes")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(OSError, match="full"):
        pack_store(CopiedStore(), source, folder, without_work=True)  # type: ignore[arg-type]
    assert list((folder / "originals").iterdir()) == []
