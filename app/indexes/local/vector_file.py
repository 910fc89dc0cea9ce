"""The dense index's rows as one file: written whole and renamed into place, read with its checksums checked."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from app.indexes.local.vectors import ExactRows, QuantisedRows

FORMAT = 1
"""Raised whenever the arrays or their meaning change; a file of another format is not read."""

_BLOCK_ARRAYS = ("keys", "documents", "codes", "offset", "scale")

Taken = TypeVar("Taken")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows as of one revision: full blocks of bytes, and the rest exact."""

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


def save_rows(rows: Rows, file: Path) -> None:
    """Replace the file; the caller sees to it that nobody else does at the same time."""
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(
            stream,
            header=np.array([FORMAT, rows.revision], np.int64),
            rest_keys=rows.rest.keys,
            rest_documents=rows.rest.documents,
            rest_vectors=rows.rest.vectors,
            blocks=np.array(len(rows.blocks)),
            **{
                f"{name}_{number}": getattr(block, name)
                for number, block in enumerate(rows.blocks)
                for name in _BLOCK_ARRAYS
            },
        )
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)


def saved_revision(file: Path) -> int:
    """Return the revision of the file's rows; -1 without a usable file."""
    header = _read(file, _header)
    return header[1] if header is not None and header[0] == FORMAT else -1


def load_rows(file: Path) -> Rows:
    """Return the file's rows; none where it is absent, damaged or of another format."""
    rows = _read(file, _rows) if saved_revision(file) >= 0 else None
    return Rows.none() if rows is None else rows


def _header(arrays: NpzFile) -> tuple[int, int]:
    version, revision = arrays["header"].tolist()
    return version, revision


def _rows(arrays: NpzFile) -> Rows:
    blocks = tuple(
        QuantisedRows(*(arrays[f"{name}_{number}"] for name in _BLOCK_ARRAYS))
        for number in range(int(arrays["blocks"]))
    )
    rest = ExactRows(arrays["rest_keys"], arrays["rest_documents"], arrays["rest_vectors"])
    return Rows(_header(arrays)[1], blocks, rest)


def _read(file: Path, take: Callable[[NpzFile], Taken]) -> Taken | None:
    try:
        # Opened here, because numpy leaves a file open that it cannot read.
        with file.open("rb") as stream, np.load(stream) as arrays:
            return take(arrays)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, BadZipFile) as error:
        log.warning("a file of vectors cannot be used", extra={"file": str(file), "why": repr(error)})
        # What the system could not read now is not damaged.
        if getattr(error, "errno", None) is None:
            file.unlink(missing_ok=True)
        return None
