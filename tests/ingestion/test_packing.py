import os
import time
from pathlib import Path

import pytest

from app.ingestion.packing import clear_workplaces, workplace

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
