"""What a collection's store must do so that it can be looked after; the part of the port that no search needs."""

from typing import Protocol

from app.stores.port import Keys


class StoreUpkeep(Protocol):
    """Keep a store small, and tell what is to be compared. Thread-safe; safe for several processes."""

    def chunk_order(self) -> tuple[Keys, Keys]:
        """Return the keys of all children, by document and place in it, and those of their documents."""
        ...

    def staging_jobs(self) -> list[str]:
        """Return the ids of jobs that have staged vectors or contexts."""
        ...

    def trim_changes(self, keep: int) -> int:
        """Forget all but the newest `keep` lines (at least 1) of the change log; return how many went."""
        ...

    def compact(self) -> None:
        """Leave nothing on the disk of what was deleted.

        Raises `StoreBusy` where others read or write for too long, `StorageFull` without room for a copy.
        """
        ...
