"""Vectors of one collection, resident in each process and searched with faiss; a file makes the next opening fast.

Rows never change in place: a write makes new rows of the old ones and swaps them in one assignment, so searches go on
beside it without a lock. Each process follows the change log for itself.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.embedding_space import EmbeddingSpace
from app.errors import NotFound, StoreBusy
from app.indexes.local.lock import WriteLock
from app.indexes.local.quantised import QuantisedRows
from app.indexes.local.rows import BLOCK_ROWS, Rows
from app.indexes.local.vector_file import load_rows, save_rows, saved_revision
from app.indexes.local.vectors import ExactRows, Found, best
from app.indexes.port import Candidates, DenseIndex, IndexEntry
from app.processors import processors
from app.stores.port import Keys, Scope, VectorField

ERASE_WAIT_SECONDS = 30.0

log = logging.getLogger(__name__)

_NO_KEYS = np.zeros(0, np.int64)

_Part: TypeAlias = QuantisedRows | ExactRows

_WORTH_ANOTHER_PROCESSOR = 50_000
"""Rows with a sketch from which on it is faster to wake another thread for them: 0.7 ms of work."""


class FaissDenseIndex:
    """The dense index of one field of a collection in one embedding space.

    `folder` is where its file and the file's lock stand; vectors of another space have another file.
    """

    wants_terms: ClassVar[bool] = False
    wants_vectors: ClassVar[bool] = True

    def __init__(self, folder: Path, field: VectorField = "context", space: EmbeddingSpace | None = None) -> None:
        self.field = field
        name = "dense" if field == "context" else f"dense-{field}"
        if space is not None:
            name = f"{name}-{space.digest}"
        self.file = folder / f"{name}.npz"
        self._saving = WriteLock(folder / f"{name}.lock")
        self._writing = threading.Lock()
        self._rows = load_rows(self.file)
        self._unsaved = 0

    # --- follow ---

    def revision(self) -> int:
        """Return the store revision that this process's rows have reached."""
        return self._rows.revision

    def erase(self) -> bool:
        """Put the rows in the place of the file, which may hold more; raise `StoreBusy` where others keep saving."""
        with self._saving.held(ERASE_WAIT_SECONDS) as granted:
            if not granted:
                raise StoreBusy("another process is writing the vectors", retry_after=5)
            self._rows = self._rows.cleaned().sketched()
            if saved_revision(self.file) <= self._rows.revision:
                save_rows(self._rows, self.file)
                self._unsaved = 0
        return True

    def is_worn(self) -> bool:
        """Return False: deleted rows leave nothing behind."""
        return False

    def keys(self) -> Keys:
        """Return every chunk key, sorted."""
        return self._rows.keys()

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Hold the exclusive right to `apply` and `replace` in this process; yields False at once without it."""
        if not self._writing.acquire(blocking=False):
            yield False
            return
        try:
            yield True
            # Searches find what was written already, so that none waits for this.
            self._rows = self._rows.joined().sketched()
            if self._unsaved >= max(BLOCK_ROWS, len(self._rows) // 4):
                self._save()
        finally:
            self._writing.release()

    def apply(self, upserts: Sequence[IndexEntry], deletes: Sequence[int], revision: int) -> None:
        """Swap in rows with the changes; raise `ValueError` for vectors of another dimension than the rest."""
        gone = np.array([*deletes, *(entry.chunk_key for entry in upserts)], np.int64)
        self._rows = self._rows.changed(gone, _exact(upserts), revision)
        self._unsaved += len(gone)

    def replace(self, batches: Iterable[Sequence[IndexEntry]], revision: int) -> None:
        """Swap in rows of these entries only."""
        rows = Rows.none()
        for batch in batches:
            rows = rows.changed(_NO_KEYS, _exact(batch), revision).joined()
        # The file may be of a store that was since restored to an earlier state, and no file is better than that.
        self.file.unlink(missing_ok=True)
        self._rows = Rows(revision, rows.blocks, rows.rest).sketched()
        self._unsaved = max(len(rows), 1)
        # At once, since of two files the newer stays: a process that is behind must not save what is gone.
        self._save()

    def close(self) -> None:
        """Save the rows unless the file lacks so little of them that following the log is faster."""
        # A write that goes on cannot be waited for: its rows are then read from the store at the next opening.
        if self._writing.acquire(blocking=False):
            try:
                if self._unsaved * 20 > len(self._rows):
                    self._save()
            finally:
                self._writing.release()

    def _save(self) -> None:
        try:
            with self._saving.held() as granted:
                if granted and saved_revision(self.file) < self._rows.revision:
                    save_rows(self._rows, self.file)
        except NotFound:
            # The collection was deleted.
            return
        except OSError as error:
            # The file only makes opening faster: a full disk must not fail who wrote or closed.
            log.warning("the vectors were not saved", extra={"file": str(self.file), "why": str(error)})
        self._unsaved = 0

    # --- search ---

    def search(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> Candidates:
        """Return up to `limit` chunks of the scope by approximate inner product."""
        rows = self._rows
        nothing = Candidates(np.zeros(0, np.int64), np.zeros(0, np.float32))
        if limit < 1 or scope.is_empty or not len(rows):
            return nothing
        query = np.ascontiguousarray(vector, np.float32)
        parts: list[_Part] = [*rows.blocks, rows.rest]
        found = _nearest([part for part in parts if len(part)], query, limit, scope.document_keys)
        keys, scores = zip(*found, strict=True)
        return Candidates(*best(np.concatenate(keys), np.concatenate(scores), limit))


def remove_other_files(folder: Path, kept: Iterable[DenseIndex]) -> None:
    """Remove the files of dense indexes but those of the given ones."""
    names = {index.file.stem for index in kept if isinstance(index, FaissDenseIndex)}
    for file in folder.glob("dense*"):
        if file.stem not in names:
            file.unlink(missing_ok=True)


def _nearest(parts: Sequence[_Part], query: NDArray[np.float32], limit: int, documents: Keys | None) -> list[Found]:
    """Search every part, the longest first, on each processor that is or becomes idle.

    Faiss itself shares out queries, not rows.
    """
    waiting = deque(sorted(parts, key=_weight, reverse=True))

    def all_waiting() -> list[Found]:
        mine: list[Found] = []
        while (part := _next(waiting)) is not None:
            mine.append(part.nearest(query, limit, documents))
        return mine

    found: list[Found] = []
    beside: list[Future[list[Found]]] = []
    while (part := _next(waiting)) is not None:
        if len(beside) < processors.count - 1 and sum(map(_weight, [*waiting])) >= _WORTH_ANOTHER_PROCESSOR:
            begun = processors.beside(all_waiting)
            beside += [] if begun is None else [begun]
        found.append(part.nearest(query, limit, documents))
    others: list[list[Found]] = [processors.result(future) for future in beside]
    return [*found, *chain.from_iterable(others)]


def _next(waiting: deque[_Part]) -> _Part | None:
    """Take the first part; `None` where other threads have taken the last."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _weight(part: _Part) -> int:
    """Return how long a part takes to search, beside others: rows without a sketch take five times as long."""
    return len(part) if isinstance(part, QuantisedRows) and part.sketch is not None else 5 * len(part)


def _exact(entries: Sequence[IndexEntry]) -> ExactRows:
    if not entries:
        return ExactRows.none(0)
    return ExactRows(
        np.array([entry.chunk_key for entry in entries], np.int64),
        np.array([entry.document_key for entry in entries], np.int64),
        np.stack([entry.vector for entry in entries]).astype(np.float32, copy=False),
    )
