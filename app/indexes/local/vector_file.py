"""The dense index's rows as one file: written whole and renamed into place, read with its checksums checked."""

import logging
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.indexes.local.vectors import ExactRows, QuantisedRows

FORMAT = 1
"""Raised whenever the arrays or their meaning change; a file of another format is not read."""

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
    blocks = rows.blocks
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(
            stream,
            header=np.array([FORMAT, rows.revision], np.int64),
            rest_keys=rows.rest.keys,
            rest_documents=rows.rest.documents,
            rest_vectors=rows.rest.vectors,
            lengths=np.array([len(block) for block in blocks], np.int64),
            **{
                f"{name}_{number}": getattr(block, name)
                for number, block in enumerate(blocks)
                for name in ("keys", "documents", "codes", "offset", "scale")
            },
        )
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)


def saved_revision(file: Path) -> int:
    """Return the revision of the file's rows; -1 without a usable file."""
    try:
        with np.load(file) as arrays:
            version, revision = arrays["header"].tolist()
            return int(revision) if version == FORMAT else -1
    except FileNotFoundError:
        return -1
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        log.warning("a file of vectors is not readable", extra={"file": str(file), "why": str(error)})
        return -1


def load_rows(file: Path) -> Rows:
    """Return the file's rows; none where it is absent, damaged or of another format."""
    if saved_revision(file) < 0:
        return Rows.none()
    try:
        with np.load(file) as arrays:
            blocks = tuple(
                QuantisedRows(
                    *(arrays[f"{name}_{number}"] for name in ("keys", "documents", "codes", "offset", "scale"))
                )
                for number in range(len(arrays["lengths"]))
            )
            rest = ExactRows(arrays["rest_keys"], arrays["rest_documents"], arrays["rest_vectors"])
            return Rows(int(arrays["header"][1]), blocks, rest)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        log.warning("a file of vectors is damaged", extra={"file": str(file), "why": str(error)})
        return Rows.none()
