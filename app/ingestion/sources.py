"""Keep uploaded bytes by their hash, so that a document can be read again and nothing accepted is lost."""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from app.errors import NotFound

READ_SIZE = 1 << 20
ADOPTION_GRACE_SECONDS = 60.0
"""A file touched within this time may belong to a request that has not written its job yet."""

_SPARE_SECONDS = 0.1
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Original:
    """Stored bytes: their SHA-256 in hex and their number."""

    sha256: str
    size: int


class Originals:
    """The `originals/` folder of one collection; a file's name is the SHA-256 of its bytes.

    `admit` gets the size of what is about to be added and may raise; bytes that are there already are not asked for.
    """

    def __init__(self, folder: Path, admit: Callable[[int], None] = lambda _: None) -> None:
        self._folder = folder
        self._admit = admit

    def adopt(self, file: Path) -> Original:
        """Move a finished file in and make it durable; `file` must be on the same file system.

        Raises `QuotaExceeded` and `DocumentOverQuota`, and `NotFound` where the collection is deleted meanwhile.
        """
        digest, size = hashlib.sha256(), 0
        with file.open("rb") as stream:
            while block := stream.read(READ_SIZE):
                digest.update(block)
                size += len(block)
            os.fsync(stream.fileno())
        target = self._folder / digest.hexdigest()
        if not target.exists():
            self._admit(size)
        with self._existing_folder():
            file.replace(target)
            # An equal file that was there already gets a fresh time, which keeps `remove_unless` away from it.
            os.utime(target)
            _sync_folder(self._folder)
        return Original(digest.hexdigest(), size)

    def write(self, data: bytes) -> Original:
        """Store bytes that are in memory and make them durable."""
        descriptor, name = self._new_file()
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        return self._adopt_own(Path(name))

    def copy(self, file: Path) -> Original:
        """Store the bytes of a file that stays where it is; equal bytes are not copied again."""
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stored = self._folder / digest
        if stored.is_file():
            os.utime(stored)
            return Original(digest, stored.stat().st_size)
        descriptor, name = self._new_file()
        with os.fdopen(descriptor, "wb") as target, file.open("rb") as source:
            shutil.copyfileobj(source, target, READ_SIZE)
        return self._adopt_own(Path(name))

    def holds(self, sha256: str) -> bool:
        """Return whether the bytes are there; what is no hash, as a foreign archive may hold, names no file."""
        return _HASH.fullmatch(sha256) is not None and (self._folder / sha256).is_file()

    def is_whole(self, sha256: str) -> bool:
        """Return whether the bytes are there and are those of the name."""
        if not self.holds(sha256):
            return False
        try:
            with (self._folder / sha256).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == sha256
        except FileNotFoundError:
            return False

    def path(self, sha256: str) -> Path:
        """Return where the bytes are; raise `NotFound` when they are gone."""
        if not self.holds(sha256):
            raise NotFound("the original of this document is no longer stored", hint="send the document again")
        return self._folder / sha256

    def names(self) -> list[str]:
        """Return the name of every file, also of those that are still arriving."""
        with self._existing_folder():
            return [path.name for path in self._folder.iterdir()]

    def seconds_until_removable(self, names: Iterable[str], *, arrived_before: float) -> float | None:
        """Return when `remove_unless` may remove all of these files that arrived before a time; `None` for none."""
        times: list[float] = []
        for name in names:
            with suppress(FileNotFoundError):
                times.append((self._folder / name).stat().st_mtime)
        youngest = max((each for each in times if each <= arrived_before), default=None)
        return None if youngest is None else max(0.0, youngest + ADOPTION_GRACE_SECONDS - time.time()) + _SPARE_SECONDS

    def remove_unless(self, is_needed: Callable[[str], bool], candidates: list[str] | None = None) -> int:
        """Delete stored bytes that nothing needs and nobody has just sent; return how many files went."""
        removed = 0
        names = candidates if candidates is not None else self.names()
        newest = time.time() - ADOPTION_GRACE_SECONDS
        for name in names:
            path = self._folder / name
            if path.parent != self._folder:
                continue
            # What arrives may get its name, and another process may remove the file, at any moment.
            with suppress(FileNotFoundError):
                if path.is_file() and path.stat().st_mtime < newest and not is_needed(name):
                    path.unlink()
                    removed += 1
        return removed

    def _adopt_own(self, file: Path) -> Original:
        try:
            return self.adopt(file)
        finally:
            file.unlink(missing_ok=True)

    def _new_file(self) -> tuple[int, str]:
        with self._existing_folder():
            return tempfile.mkstemp(prefix=".incoming-", dir=self._folder)

    @contextmanager
    def _existing_folder(self) -> Iterator[None]:
        # Never made here: a write that comes after its collection's deletion must not bring the folder back.
        try:
            yield
        except FileNotFoundError:
            if self._folder.is_dir():
                raise
            raise NotFound("the collection was deleted") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
