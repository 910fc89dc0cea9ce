"""What an index must do. It is derived from the store and follows its change log; deleting it loses nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.stores.port import Keys, Scope, VectorField


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A chunk as an index takes it: `terms` from our analyzer, in the order of the text, and its vector (float32).

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


Phrase: TypeAlias = tuple[str, ...]
"""Terms that stand one after another; one term alone is a phrase too."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """What every hit must hold, one phrase of each of `required`, and must not, any phrase of `excluded`."""

    required: tuple[tuple[Phrase, ...], ...] = ()
    excluded: tuple[Phrase, ...] = ()

    def __bool__(self) -> bool:
        """Return whether it keeps anything out."""
        return bool(self.required or self.excluded)

    def __and__(self, other: "Restriction") -> "Restriction":
        """Return both as one."""
        return Restriction(self.required + other.required, self.excluded + other.excluded)


NO_RESTRICTION = Restriction()


@dataclass(frozen=True, slots=True)
class Wording:
    """What a query says beyond its terms, and where it looks.

    A chunk that holds one of a term's `alternatives` counts as if it held the term; whichever scores best counts, once.
    Chunks that hold a phrase of `raised` stand higher. A term scores by its `weights`, 1 where it has none. Only the
    chunks `inside` are looked at, keys in their order, or all.
    """

    alternatives: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)
    raised: tuple[Phrase, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    restriction: Restriction = NO_RESTRICTION
    inside: Keys | None = field(default=None, compare=False)


PLAIN = Wording()


class Follower(Protocol):
    """The part every index shares. Writes are serial across threads and processes; reads never wait for a write."""

    wants_terms: ClassVar[bool]
    """Whether its entries need terms."""

    wants_vectors: ClassVar[bool]
    """Whether its entries need vectors."""

    @property
    def field(self) -> VectorField:
        """Return the field whose chunks are its entries, and whose vectors they have if it wants any."""
        ...

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

    def erase(self) -> bool:
        """Leave nothing in its files of chunks that it no longer holds; return False where only `replace` does that.

        Only inside `writing`.
        """
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
    """Find chunks that hold a query's terms, by BM25 (Robertson 1994).

    What is looked up is what `revision` has last seen in this process, or newer.
    """

    def search(self, terms: Sequence[str], limit: int, scope: Scope, wording: Wording = PLAIN) -> Candidates:
        """Return up to `limit` chunks of the scope that hold at least one term, or an alternative of one.

        Scope, restriction and `inside` apply before ranking; a chunk without any of the terms is never returned.
        """
        ...

    def holding(self, restriction: Restriction, limit: int, scope: Scope) -> Keys | None:
        """Return the sorted keys of the scope's chunks that the restriction admits, `None` where more than `limit`."""
        ...

    def admitted(self, restriction: Restriction, chunk_keys: Keys) -> Keys:
        """Return those of the chunks that the restriction admits, in the order given."""
        ...

    def terms_with_prefix(self, prefix: str, limit: int) -> list[str]:
        """Return the terms that begin so, those of the most chunks first."""
        ...

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return in how many chunks each term occurs: 0 only for none, and near the truth for many."""
        ...

    def size(self) -> int:
        """Return how many chunks it holds."""
        ...


@dataclass(frozen=True, slots=True)
class CollectionIndex:
    """The indexes of one collection; one engine may be several.

    `dense` holds the field `context`, in the `space` of the vectors. `open_dense` opens the index of another field,
    which stands in `fields` from then on, or of another space: a collection without vectors of its own in a field has
    none. `remove_others` removes the files of every dense index but these.
    """

    dense: DenseIndex
    keyword: KeywordIndex
    open_dense: Callable[[VectorField, EmbeddingSpace | None], DenseIndex]
    remove_others: Callable[[Iterable[DenseIndex]], None]
    fields: Mapping[VectorField, DenseIndex] = field(default_factory=dict)
    space: EmbeddingSpace | None = None

    def with_fields(self, names: AbstractSet[VectorField]) -> "CollectionIndex":
        """Return the same indexes and those of the fields, opened if they are not."""
        missing = sorted(names - self.fields.keys())
        opened = {name: self.open_dense(name, self.space) for name in missing}
        return replace(self, fields={**self.fields, **opened}) if opened else self

    def in_space(self, space: EmbeddingSpace | None) -> "CollectionIndex":
        """Return the keyword index and the dense indexes of a space, opened if it is another one.

        Those of the space before are left to whoever still searches them.
        """
        if space == self.space:
            return self
        fields = {name: self.open_dense(name, space) for name in self.fields}
        return replace(self, dense=self.open_dense("context", space), fields=fields, space=space)

    def of_field(self, name: VectorField) -> DenseIndex | None:
        """Return the index that holds the field, or `None` where the collection has no vectors for it.

        Without vectors of clean texts every child stands in `content` as it stands in `context`.
        """
        return self.fields.get(name, None if name == "parent" else self.dense)

    def followers(self) -> tuple[Follower, ...]:
        """Return each index once."""
        indexes: tuple[Follower, ...] = (self.dense, self.keyword, *self.fields.values())
        return tuple({id(index): index for index in indexes}.values())

    def close(self) -> None:
        """Close each index once."""
        for follower in self.followers():
            follower.close()
