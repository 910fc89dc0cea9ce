import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from app.errors import FootnoteError, NotFound, Unavailable
from app.ingestion.packing import clear_workplaces, pack_store, workplace

HOUR = 3600.0


def test_a_workplace_is_gone_after_its_use_whatever_happens(tmp_path: Path) -> None:
    def fail_amid() -> None:
        with workplace(tmp_path) as folder:
            (folder / "file").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_amid()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_removed_and_what_is_used_stays_however_long(tmp_path: Path) -> None:
    old = time.time() - 2 * HOUR
    dead, young = tmp_path / "packing-dead", tmp_path / "packing-young"
    for folder in (dead, young):
        (folder / "originals").mkdir(parents=True)
    (tmp_path / "upload-x").touch()
    with workplace(tmp_path) as used:
        for folder in (dead, used):
            os.utime(folder, (old, old))
        clear_workplaces(tmp_path, oldest=time.time() - HOUR)
        assert sorted(tmp_path.iterdir()) == sorted([young, used, tmp_path / "upload-x"])


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
