"""Find the chunks of a document's present version in the text of its next one.

Chunks are packed from the front, so that one edit would move every boundary after it, and each moved chunk would be
embedded anew. Where what a chunk held is still there, the next version is cut in the same place.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

OPENING = 32
"""Code points of a chunk by which it is looked for before its hash is compared."""

REACH = 32_768
"""How far behind where it is expected a chunk is looked for; what moved farther is cut as if it were new."""

_SCRAP = 4
"""What is new between two chunks and below this share of a chunk's size is cut together with the one after it."""


@dataclass(frozen=True, slots=True)
class KnownPiece:
    """A chunk of the present version: where it begins, its length, its first code points, and a hash of it all."""

    start: int
    length: int
    opening: str
    digest: bytes

    @classmethod
    def of(cls, start: int, text: str) -> "KnownPiece":
        """Return the piece that this text makes."""
        return cls(start, len(text), text[:OPENING], _digest(text))

    def is_at(self, text: str, place: int) -> bool:
        """Return whether the piece stands at this place of a text."""
        if place < 0 or not text.startswith(self.opening, place):
            return False
        found = text[place : place + self.length]
        return len(found) == self.length and _digest(found) == self.digest


def boundaries(text: str, known: Sequence[KnownPiece], size: int) -> tuple[int, ...]:
    """Return where a text should be cut so that the known pieces, disjoint and in order, stay as they are; sorted.

    `size` is how long a chunk may be, in code points.
    """
    places: list[int] = []
    end = 0
    for first, last in _found(text, known):
        is_scrap = len(text[end:first].strip()) * _SCRAP < size
        if text[end:first].strip() and is_scrap:
            # Beginning where the new text does, the chunk after it is cut anew together with it.
            places.append(end)
        else:
            places += (end, first)
        places.append(last)
        end = last
    return tuple(sorted({place for place in places if 0 < place < len(text)}))


def _found(text: str, known: Iterable[KnownPiece]) -> Iterator[tuple[int, int]]:
    """Yield the places of those pieces that are still there, in order and disjoint."""
    shift = end = 0
    for piece in known:
        expected = piece.start + shift
        place = expected if expected >= end and piece.is_at(text, expected) else _place(text, piece, end, expected)
        if place is not None:
            yield place, place + piece.length
            shift, end = place - piece.start, place + piece.length


def _place(text: str, piece: KnownPiece, start: int, expected: int) -> int | None:
    """Return where a piece stands now, at `start` or after it and not too far from where it was expected."""
    farthest = max(start, expected) + REACH
    place = text.find(piece.opening, start, farthest)
    while place >= 0:
        if piece.is_at(text, place):
            return place
        place = text.find(piece.opening, place + 1, farthest)
    return None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
