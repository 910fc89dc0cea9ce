import contextlib
from pathlib import Path
from typing import Any

from app.catalog.process_owner import ProcessOwner

LIVE = """
import sys
from pathlib import Path
from app.catalog.process_owner import ProcessOwner
owner = ProcessOwner(Path(sys.argv[1]))
print(owner.id, flush=True)
sys.stdin.readline()
"""


def test_a_process_is_dead_for_others_the_moment_it_is_killed(tmp_path: Path, start_python: Any) -> None:
    mine = ProcessOwner(tmp_path)
    process = start_python("-c", LIVE, tmp_path)
    other = process.stdout.readline().strip()
    assert not mine.is_dead(other)
    assert not mine.is_dead(mine.id)
    process.kill()
    process.wait(30)
    assert mine.is_dead(other)
    assert mine.is_dead(other)
    mine.close()


def test_an_owner_that_gave_up_its_id_is_dead_for_others(tmp_path: Path) -> None:
    with contextlib.closing(ProcessOwner(tmp_path)) as mine:
        other = ProcessOwner(tmp_path)
        assert not mine.is_dead(other.id)
        other.close()
        other.close()
        assert mine.is_dead(other.id)
        assert mine.is_dead("4242-never-was")


def test_files_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path: Path) -> None:
    (tmp_path / "99-dead.lock").write_bytes(b"")
    with contextlib.closing(ProcessOwner(tmp_path)) as one, contextlib.closing(ProcessOwner(tmp_path)) as two:
        assert {path.name for path in tmp_path.iterdir()} == {f"{one.id}.lock", f"{two.id}.lock"}
    assert list(tmp_path.iterdir()) == []
