"""What a collection's store must do so that it can be looked after; the part of the port that no search needs."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.stores.port import IndexedChunk, Keys, VectorField


class NextText(NamedTuple):
    """A text that is to be embedded in the next space, of the chunk that has it."""

    chunk_key: int
    text_hash: bytes
    text: str


EmbedNext: TypeAlias = Callable[[Sequence[NextText]], Mapping[bytes, NDArray[np.float32]]]
"""Return the next vectors of texts by the hash of each."""


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

    # --- move to another embedding space ---

    def begin_next(self, space: EmbeddingSpace) -> EmbeddingSpace:
        """Begin to gather vectors of another space beside the present ones, or go on; return it as it is stored."""
        ...

    def forget_next(self) -> None:
        """Forget everything of a next space."""
        ...

    def lacking_texts(self, after: int, limit: int) -> list[NextText]:
        """Return texts without a vector in the next space, of chunks with keys from `after` on, by key."""
        ...

    def keep_next(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep vectors of the next space by the hash of their texts; to do it again changes nothing."""
        ...

    def keep_next_parents(self) -> None:
        """Derive the next vectors of parents from those of their children."""
        ...

    def next_counts(self) -> tuple[int, int]:
        """Return how many vectors have one in the next space, and how many there are."""
        ...

    def next_chunks(self, after: int, limit: int, field: VectorField) -> list[IndexedChunk]:
        """Return the field's chunks with their next vectors by key, those after key `after`, without their texts."""
        ...

    def adopt_next(self, embed: EmbedNext | None = None) -> bool:
        """Make the next space the present one, with all its vectors, in one transaction.

        Returns False, with nothing done, while a vector lacks its next one: a document was written meanwhile. `embed`
        is asked for those of a few texts in the transaction, which keeps writers waiting for so long.
        """
        ...
