"""All rows of a dense index as of one revision: what a write makes of those before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.indexes.local.quantised import QuantisedRows
from app.indexes.local.vectors import ExactRows
from app.stores.port import Keys

BLOCK_ROWS = 1024
"""Rows that become a block; fewer stay exact, which takes six times as long to search a row."""

LARGEST_BLOCK = 98_304
"""Most rows that are joined, in two seconds of one processor: searches wait as long for what was written meanwhile."""

_JOINED_SHARE = 3
"""A block is joined to one that is at most so many times as large: each row is written anew some five times."""

_MOST_DELETED_SHARE = 4
"""One deleted row in so many is cleaned away; before that it is only passed over."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Full blocks of bytes, and the rest exact; immutable.

    What was changed can be searched at once, and is found faster when it is `joined` and `sketched`.
    """

    revision: int
    blocks: tuple[QuantisedRows, ...]
    rest: ExactRows

    @classmethod
    def none(cls) -> "Rows":
        """Return no rows of revision 0."""
        return cls(0, (), ExactRows.none(0))

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.blocks)) + len(self.rest)

    def keys(self) -> Keys:
        """Return every chunk key, sorted."""
        return np.sort(np.concatenate([self.rest.keys, *(block.keys for block in self.blocks)]))

    def changed(self, gone: Keys, added: ExactRows, revision: int) -> "Rows":
        """Return the rows without those of the gone chunks and with the added ones."""
        blocks: list[QuantisedRows] = []
        loose = [self.rest.without(gone)]
        for block in self.blocks:
            kept = block.without(gone)
            # A block that has lost half its rows gives up the rest, so that there are never many small ones.
            if len(kept) < BLOCK_ROWS // 2:
                loose.append(kept.decoded())
            elif kept.deleted * _MOST_DELETED_SHARE > len(kept.every_key):
                blocks.append(kept.cleaned())
            else:
                blocks.append(kept)
        return _settled(revision, blocks, [*loose, added])

    def cleaned(self) -> "Rows":
        """Return the same rows with nothing left of deleted ones."""
        return replace(self, blocks=tuple(block.cleaned() for block in self.blocks))

    def joined(self) -> "Rows":
        """Return the same rows in few blocks."""
        groups: list[list[QuantisedRows]] = []
        for block in sorted(self.blocks, key=_written, reverse=True):
            groups.append([block])
            while len(groups) > 1 and _should_join(*groups[-2:]):
                smaller = groups.pop()
                groups[-1] += smaller
        if len(groups) == len(self.blocks):
            return self
        blocks = (QuantisedRows.joined(group) if len(group) > 1 else group[0] for group in groups)
        return replace(self, blocks=tuple(blocks))

    def sketched(self) -> "Rows":
        """Return the same rows, each block with its sketch."""
        return replace(self, blocks=tuple(block.sketched() for block in self.blocks))


def _written(block: QuantisedRows) -> int:
    """Return the rows that stand in the block, deleted ones too."""
    return len(block.every_key)


def _should_join(larger: Sequence[QuantisedRows], smaller: Sequence[QuantisedRows]) -> bool:
    more, less = sum(map(_written, larger)), sum(map(_written, smaller))
    return more <= _JOINED_SHARE * less and more + less <= LARGEST_BLOCK


def _settled(revision: int, blocks: list[QuantisedRows], loose: Sequence[ExactRows]) -> Rows:
    """Return rows where what is loose has become blocks as far as it fills them."""
    rest = ExactRows.joined(list(loose))
    while len(rest) >= BLOCK_ROWS:
        blocks.append(QuantisedRows.of(rest.picked(np.arange(BLOCK_ROWS))))
        rest = rest.picked(np.arange(BLOCK_ROWS, len(rest)))
    return Rows(revision, tuple(blocks), rest)
