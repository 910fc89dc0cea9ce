"""The exclusive right to write an index, across threads and processes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import NotFound

POLL_SECONDS = 0.01


class WriteLock:
    """A lock on a file that exists only for it.

    Each holder opens the file anew, so that threads of one process exclude each other too, and the kernel frees the
    lock when its process dies, however it dies. The `filelock` package is not used because it makes missing folders,
    which would bring a deleted collection's folder back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def held(self, wait_seconds: float = 0.0) -> Iterator[bool]:
        """Yield whether the lock is held, after trying for `wait_seconds`; raise `NotFound` in no collection."""
        descriptor = self._open()
        try:
            yield _acquire(descriptor, time.monotonic() + wait_seconds)
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        try:
            # The index folder may be deleted at any time, and is made again; its collection's folder is not.
            self._path.parent.mkdir(exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise NotFound("the collection was deleted") from None


def _acquire(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True
