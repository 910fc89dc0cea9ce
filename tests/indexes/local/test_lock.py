import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.errors import NotFound
from app.indexes.local.lock import WriteLock


def test_one_holds_it_and_others_are_told_at_once(tmp_path: Path) -> None:
    lock, other = WriteLock(tmp_path / "x.lock"), WriteLock(tmp_path / "x.lock")
    with lock.held() as mine, lock.held() as again, other.held() as its:
        assert (mine, again, its) == (True, False, False)
    with other.held() as its:
        assert its


def test_waiting_ends_when_the_holder_is_done(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "x.lock")
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.held():
            holding.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(10)
    started = time.monotonic()
    with lock.held(0.05) as granted:
        assert not granted
    assert time.monotonic() - started >= 0.05
    threading.Timer(0.02, release.set).start()
    with lock.held(10) as granted:
        assert granted
    thread.join()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from app.indexes.local.lock import WriteLock\n"
        "with WriteLock(Path(sys.argv[1])).held() as granted: print(granted, flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "x.lock")], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"True\n"
        with WriteLock(tmp_path / "x.lock").held() as granted:
            assert not granted
        child.kill()
        child.wait()
    with WriteLock(tmp_path / "x.lock").held() as granted:
        assert granted


def test_an_index_folder_is_made_again_but_no_collection_folder(tmp_path: Path) -> None:
    with WriteLock(tmp_path / "index" / "x.lock").held() as granted:
        assert granted
    with pytest.raises(NotFound), WriteLock(tmp_path / "gone" / "index" / "x.lock").held():
        pass
    assert not (tmp_path / "gone").exists()
