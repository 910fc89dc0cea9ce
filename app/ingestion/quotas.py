"""What a collection may hold: its quotas, what it uses of them, and the check of bytes before they are stored.

Documents and chunks are checked inside the store's transactions, so no race goes beyond them. Bytes are checked before
an original is stored: requests that arrive together may go beyond by what they bring.
"""

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.catalog.collections import Collection
from app.domain import Document
from app.errors import DocumentOverQuota, QuotaExceeded
from app.stores.port import CollectionStore, StoreStats

_FOLDERS_REMEMBERED = 1000
_FRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Quotas:
    """The most that a collection may hold; `None` is no limit. `documents` counts every state, `bytes` originals."""

    documents: int | None = None
    chunks: int | None = None
    bytes: int | None = None
    document_bytes: int | None = None

    @classmethod
    def of(cls, collection: Collection | None) -> "Quotas":
        """Return the quotas that a collection's settings name."""
        return cls() if collection is None else cls(**collection.settings.get("quotas") or {})

    def use(self, stats: StoreStats) -> dict[str, tuple[int, int | None]]:
        """Return limit and present use of each quota that is set; `document_bytes` is of one document, so unused."""
        used = {
            "documents": sum(stats.documents.values()),
            "chunks": stats.chunks,
            "bytes": stats.original_bytes,
            "document_bytes": None,
        }
        limits = {name: getattr(self, name) for name in used}
        return {name: (limit, used[name]) for name, limit in limits.items() if limit is not None}

    def check_chunks(self, needed: int, before: Document | None, store: CollectionStore) -> None:
        """Raise where a document's new chunks, in the place of those it has, have no room now."""
        if self.chunks is not None:
            used = store.stats().chunks - (before.chunk_count if before else 0)
            if used + needed > self.chunks:
                raise QuotaExceeded.of("chunks", limit=self.chunks, used=used, needed=needed)

    def check_original(self, size: int, use: Callable[[int, int], int]) -> None:
        """Raise where an original of `size` bytes may not be added; `use` gives the bytes stored, by size and limit."""
        if self.document_bytes is not None and size > self.document_bytes:
            raise DocumentOverQuota.of_size(size, self.document_bytes)
        if self.bytes is not None:
            used = use(size, self.bytes)
            if used + size > self.bytes:
                raise QuotaExceeded.of("bytes", limit=self.bytes, used=used, needed=size)


@dataclass(slots=True)
class _Size:
    """What is known of one folder: its files when it was last looked at, and what was let in since."""

    looking: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, int] = field(default_factory=dict)
    total: int = 0
    looked_at: float = -math.inf
    let_in: int = 0


class FolderSizes:
    """The bytes in folders whose files never change, for who adds to them. Thread-safe.

    A folder is looked through once a second at most, and whenever what was let in since then could fill it. What other
    processes add within that second is not seen, as that which arrives together is not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sizes: OrderedDict[Path, _Size] = OrderedDict()

    def use(self, folder: Path, adding: int, limit: int) -> int:
        """Return the bytes in a folder, its drafts left out; exactly where `adding` to them may go beyond `limit`."""
        with self._lock:
            size = self._sizes.setdefault(folder, _Size())
            self._sizes.move_to_end(folder)
            if len(self._sizes) > _FOLDERS_REMEMBERED:
                self._sizes.popitem(last=False)
        with size.looking:
            now = self._clock()
            if now - size.looked_at > _FRESH_SECONDS or size.total + size.let_in + adding > limit:
                size.files = _files_in(folder, size.files)
                size.total, size.let_in, size.looked_at = sum(size.files.values()), 0, now
            used = size.total + size.let_in
            if used + adding <= limit:
                size.let_in += adding
            return used


def _files_in(folder: Path, known: Mapping[str, int]) -> dict[str, int]:
    """Return the size of each file in a folder but its drafts, whose names begin with a dot."""
    present: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            # A draft is what is just being checked.
            if entry.name.startswith("."):
                continue
            # A file may be deleted while others are counted.
            with suppress(FileNotFoundError):
                size = known.get(entry.name)
                present[entry.name] = entry.stat().st_size if size is None else size
    return present
