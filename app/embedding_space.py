"""What makes the vectors of two embedders comparable, and whether two are."""

import hashlib
import struct
from dataclasses import dataclass

from app.errors import EmbeddingModelMismatch


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """What makes two vectors comparable.

    `fingerprint` is the unit vector (float32, `dimensions` long) of a fixed sentence, as a tuple; two spaces are
    the same when provider-independent `model` and `dimensions` are equal and fingerprints have a cosine of at
    least 0.995 (8-bit kernels differ by about 0.001 between machines).
    """

    provider: str
    model: str
    dimensions: int
    fingerprint: tuple[float, ...] = ()

    @property
    def digest(self) -> str:
        """Return a short name for files: another one for another space, as it is stored."""
        values = struct.pack(f"<{len(self.fingerprint)}f", *self.fingerprint)
        return hashlib.sha256(f"{self.model}/{self.dimensions}/".encode() + values).hexdigest()[:12]


_SAME_FINGERPRINT_COSINE = 0.995


def same_space(one: EmbeddingSpace, other: EmbeddingSpace) -> bool:
    """Return whether vectors of the two spaces may be compared; an absent fingerprint is not held against either."""
    if (one.model, one.dimensions) != (other.model, other.dimensions):
        return False
    if not one.fingerprint or not other.fingerprint or one.fingerprint == other.fingerprint:
        return True
    cosine = sum(a * b for a, b in zip(one.fingerprint, other.fingerprint, strict=True))
    return cosine >= _SAME_FINGERPRINT_COSINE


def require_same_space(stored: EmbeddingSpace, present: EmbeddingSpace) -> None:
    """Raise `EmbeddingModelMismatch` where the stored vectors are of another space than the embedder's present one."""
    if not same_space(stored, present):
        raise EmbeddingModelMismatch(
            f"the collection holds vectors of {stored.model} ({stored.dimensions} dimensions), "
            f"the service embeds with {present.model} ({present.dimensions})",
            hint="configure the model that the collection was made with, or move the collection to another by "
            "`POST /v1/collections/{collection}/reembed`",
        )
