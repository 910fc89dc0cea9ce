"""What an index must do. It is derived from the store and follows its change log; deleting it loses nothing."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from app.stores.port import Keys, Scope


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A chunk as an index takes it: `terms` from our analyzer, and its vector (float32).

    What the index does not want (`wants_terms`, `wants_vectors`) is empty. The terms of one key never change: text that
    changes gets a new key from the store.
    """

    chunk_key: int
    document_key: int
    terms: Sequence[str]
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunk keys with scores, best first; int64 and float32 of one length. Ties are broken by the smaller key."""

    keys: Keys
    scores: NDArray[np.float32]


class Follower(Protocol):
    """The part every index shares. Writes are serial across threads and processes; reads never wait for a write."""

    wants_terms: ClassVar[bool]
    """Whether its entries need terms."""

    wants_vectors: ClassVar[bool]
    """Whether its entries need vectors."""

    def revision(self) -> int:
        """Return the store revision this index has reached, as this process sees it now; 0 when empty."""
        ...

    def writing(self) -> AbstractContextManager[bool]:
        """Hold the exclusive right to `apply` and `replace`; yields False at once where another holds it.

        `revision()` is fresh inside: what another process wrote before is seen.
        """
        ...

    def apply(self, upserts: Sequence[IndexEntry], deletes: Sequence[int], revision: int) -> None:
        """Write one batch of changes, and the revision it reaches last of all or with them.

        After a crash in between the batch is applied again, which must change nothing more.
        """
        ...

    def replace(self, batches: Iterable[Sequence[IndexEntry]], revision: int) -> None:
        """Make these entries the whole content; searches see the old content until all of the new one is there."""
        ...

    def is_worn(self) -> bool:
        """Return whether what was deleted takes more room than what is left, so that a rebuild pays."""
        ...

    def keys(self) -> Keys:
        """Return every chunk key it holds, sorted, for `verify`."""
        ...

    def close(self) -> None:
        """Release files and memory; saves what makes the next opening faster."""
        ...


class DenseIndex(Follower, Protocol):
    """Find vectors near a query."""

    def search(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> Candidates:
        """Return up to `limit` chunks of the scope by approximate inner product.

        The scope applies before ranking: fewer than `limit` come back only when the scope holds fewer.
        """
        ...


class KeywordIndex(Follower, Protocol):
    """Find chunks that hold a query's terms, by BM25 (Robertson 1994)."""

    def search(self, terms: Sequence[str], limit: int, scope: Scope) -> Candidates:
        """Return up to `limit` chunks of the scope that hold at least one term.

        The scope applies before ranking; a chunk without any of the terms is never returned.
        """
        ...

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return in how many chunks each term occurs: 0 only for none, and near the truth for many."""
        ...

    def size(self) -> int:
        """Return how many chunks it holds."""
        ...


@dataclass(frozen=True, slots=True)
class CollectionIndex:
    """The two indexes of one collection; one engine may be both."""

    dense: DenseIndex
    keyword: KeywordIndex

    def followers(self) -> tuple[Follower, ...]:
        """Return each index once."""
        return (self.dense,) if self.dense is self.keyword else (self.dense, self.keyword)  # type: ignore[comparison-overlap]

    def close(self) -> None:
        """Close each index once."""
        for follower in self.followers():
            follower.close()
