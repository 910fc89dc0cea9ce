"""Keep files that are under way in a folder of the process's own, so that what it leaves when it dies goes at once."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


class Spool:
    """A folder below `parent` that is this process's as long as it holds the folder's lock.

    The kernel drops the lock with the process, even at kill -9.
    """

    def __init__(self, parent: Path) -> None:
        parent.mkdir(exist_ok=True)
        self.folder, self._held = _hold_new(parent)

    def close(self) -> None:
        """Remove the folder with what is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._held)


def clear_dead(parent: Path) -> None:
    """Remove what no living process holds; safe while others come and go."""
    for path in parent.iterdir():
        with suppress(FileNotFoundError):
            if path.is_dir():
                _remove_unless_held(path)
            else:
                path.unlink()


def _hold_new(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent))
        with suppress(FileNotFoundError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(held, fcntl.LOCK_EX)
            # Another process may have taken the folder for a dead one's and removed it before it was locked.
            if folder.is_dir():
                return folder, held
            os.close(held)


def _remove_unless_held(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
