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
