"""Let a process prove that it lives, so that others can take over its jobs the moment it dies."""

import fcntl
import os
import secrets
from pathlib import Path

_SUFFIX = ".lock"


class ProcessOwner:
    """An owner id that is alive as long as this process, or this object, holds the lock of its file.

    The kernel drops the lock with the process, even at kill -9; a child made by `fork` without `exec` would hold it on.
    Files of the dead are removed on the way.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.id = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._descriptor: int | None = _hold_new(self._path(self.id))
        self._remove_dead()

    def is_dead(self, owner: str) -> bool:
        """Return whether no process holds that owner id any more."""
        return owner != self.id and not _is_held(self._path(owner))

    def close(self) -> None:
        """Give the id up, as if the process had ended."""
        if self._descriptor is not None:
            self._path(self.id).unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}{_SUFFIX}"

    def _remove_dead(self) -> None:
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path.name.removesuffix(_SUFFIX) != self.id:
                _is_held(path)


def living_owners(folder: Path) -> list[str]:
    """Return the ids that processes hold in a folder; none where there is no folder."""
    return [path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}") if _is_held(path)]


def _hold_new(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another process may have taken the file for a dead one's and removed it before it was locked.
        if path.exists():
            return descriptor
        os.close(descriptor)


def _is_held(path: Path) -> bool:
    """Return whether a process holds the file's lock; remove the file if none does."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
