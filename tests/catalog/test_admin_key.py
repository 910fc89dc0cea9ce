from pathlib import Path
from typing import Any

import pytest

from app.catalog.admin_key import admin_key
from app.errors import Misconfigured
from app.settings import Settings

MAKE = """
import sys
from pathlib import Path
from app.catalog.admin_key import admin_key
from app.settings import Settings
settings = Settings(data=Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(*admin_key(settings))
"""


def test_the_environments_key_is_used_and_not_written_down(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data": tmp_path, "admin_key": "a-key-that-was-given"})
    assert admin_key(settings) == ("a-key-that-was-given", False)
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data")
    made, is_new = admin_key(settings)
    assert is_new
    assert admin_key(settings) == (made, False)
    file = tmp_path / "data" / "admin.key"
    assert file.read_text() == made + "\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path, start_python: Any) -> None:
    processes = [start_python("-c", MAKE, tmp_path) for _ in range(4)]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].split() for process in processes]
    assert len({key for key, _ in answers}) == 1
    assert sorted(is_new for _, is_new in answers) == ["False", "False", "False", "True"]


def test_a_draft_that_a_killed_process_left_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "admin.key.new").write_text("half")
    made, is_new = admin_key(Settings(data=tmp_path))
    assert is_new
    assert len(made) > 40
    assert not (tmp_path / "admin.key.new").exists()


def test_a_file_without_a_key_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("\n")
    with pytest.raises(Misconfigured, match="holds no key"):
        admin_key(Settings(data=tmp_path))
