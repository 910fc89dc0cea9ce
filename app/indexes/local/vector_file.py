"""The dense index's rows as one file: written whole and renamed into place, read with its checksums checked."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.lib.format import write_array
from numpy.lib.npyio import NpzFile

from app.indexes.local.quantised import QuantisedRows
from app.indexes.local.rows import Rows
from app.indexes.local.sketch import load_sketch, sketch_bytes
from app.indexes.local.vectors import ExactRows
from app.processors import processors

FORMAT = 2
"""Raised whenever the arrays or their meaning change; a file of another format is not read."""

_BLOCK_ARRAYS = ("keys", "documents", "codes", "offset", "scale", "sketch", "reach", "live")

_DAMAGE = (
    *(OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, RuntimeError, BadZipFile),
    # Of a damaged description of an array, which is read as Python's text.
    *(SyntaxError, TokenError, AssertionError),
)

Taken = TypeVar("Taken")

log = logging.getLogger(__name__)


def save_rows(rows: Rows, file: Path) -> None:
    """Replace the file; the caller sees to it that nobody else does at the same time."""
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        # Array by array, where `numpy.savez` would need a copy of all of them at once.
        with ZipFile(stream, "w", ZIP_STORED) as archive:
            for name, array in _arrays(rows):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    write_array(member, np.asanyarray(array), allow_pickle=False)
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
    # Most of the time the kernel makes room: half a second for 500 MB, in some virtual machines two.
    with ThreadPoolExecutor(processors.count) as threads:
        blocks = tuple(threads.map(partial(_block, arrays), range(int(arrays["blocks"]))))
    rest = ExactRows(arrays["rest_keys"], arrays["rest_documents"], arrays["rest_vectors"])
    return Rows(_header(arrays)[1], blocks, rest)


def _arrays(rows: Rows) -> Iterator[tuple[str, Any]]:
    yield "header", np.array([FORMAT, rows.revision], np.int64)
    yield "rest_keys", rows.rest.keys
    yield "rest_documents", rows.rest.documents
    yield "rest_vectors", rows.rest.vectors
    yield "blocks", np.array(len(rows.blocks))
    for number, block in enumerate(rows.blocks):
        yield f"keys_{number}", block.every_key
        yield f"documents_{number}", block.every_document
        yield f"codes_{number}", block.codes
        yield f"offset_{number}", block.offset
        yield f"scale_{number}", block.scale
        yield f"sketch_{number}", sketch_bytes(block.sketch)
        yield f"reach_{number}", np.array(block.reach)
        yield f"live_{number}", np.zeros(0, np.bool_) if block.live is None else block.live


def _block(arrays: NpzFile, number: int) -> QuantisedRows:
    array = {name: arrays[f"{name}_{number}"] for name in _BLOCK_ARRAYS}
    live = array["live"]
    block = QuantisedRows.of_codes(
        array["keys"],
        array["documents"],
        array["codes"],
        array["offset"],
        array["scale"],
        live if len(live) else None,
    )
    return block.with_sketch(load_sketch(array["sketch"]), int(array["reach"]))


def _read(file: Path, take: Callable[[NpzFile], Taken]) -> Taken | None:
    try:
        # Opened here, because numpy leaves a file open that it cannot read.
        with file.open("rb") as stream, np.load(stream) as arrays:
            return take(arrays)
    except FileNotFoundError:
        return None
    except _DAMAGE as error:
        log.warning("a file of vectors cannot be used", extra={"file": str(file), "why": repr(error)})
        # What the system could not read now is not damaged.
        if getattr(error, "errno", None) is None:
            file.unlink(missing_ok=True)
        return None
