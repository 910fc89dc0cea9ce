import os
import subprocess
import sys
from pathlib import Path

from app.ingestion.spool import Spool, clear_dead

OWN_AND_DIE = """
import os, sys
from pathlib import Path
from app.ingestion.spool import Spool
spool = Spool(Path(sys.argv[1]))
(spool.folder / "upload").write_bytes(b"x")
print(spool.folder, flush=True)
sys.stdin.readline()
os._exit(9)
"""


def test_what_a_process_left_is_removed_when_it_has_died_and_not_before(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_AND_DIE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    folder = Path(process.stdout.readline().strip())
    own = Spool(tmp_path)
    clear_dead(tmp_path)
    assert (folder / "upload").exists()

    process.communicate("die\n")
    clear_dead(tmp_path)
    assert list(tmp_path.iterdir()) == [own.folder]
    own.close()
    assert list(tmp_path.iterdir()) == []


def test_files_that_belong_to_no_process_are_removed_however_young(tmp_path: Path) -> None:
    (tmp_path / "upload-of-an-earlier-release").touch()
    os.mkfifo(tmp_path / "no-file")
    clear_dead(tmp_path)
    assert list(tmp_path.iterdir()) == []
