"""What a collection may hold: its quotas, what it uses of them, and the check of bytes before they are stored.

Documents and chunks are checked inside the store's transactions, so no race goes beyond them. Bytes are checked before
an original is stored: requests that arrive together may go beyond by what they bring.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.catalog.collections import Collection
from app.domain import Document
from app.errors import DocumentOverQuota, QuotaExceeded
from app.stores.port import CollectionStore, StoreStats

_FOLDERS_REMEMBERED = 1000


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

    def check_original(self, size: int, stored_bytes: Callable[[], int]) -> None:
        """Raise where an original of `size` bytes may not be added to what is stored."""
        if self.document_bytes is not None and size > self.document_bytes:
            raise DocumentOverQuota.of_size(size, self.document_bytes)
        if self.bytes is not None:
            used = stored_bytes()
            if used + size > self.bytes:
                raise QuotaExceeded.of("bytes", limit=self.bytes, used=used, needed=size)


class FolderSizes:
    """The bytes in folders whose files never change, so that only those that came since are looked at. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: dict[Path, dict[str, int]] = {}

    def bytes_in(self, folder: Path) -> int:
        """Return the bytes of all files in a folder but its drafts, whose names begin with a dot."""
        with self._lock:
            known = self._sizes.pop(folder, {})
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
            self._sizes[folder] = present
            if len(self._sizes) > _FOLDERS_REMEMBERED:
                del self._sizes[next(iter(self._sizes))]
            return sum(present.values())
