"""Bring an index to its store's revision: follow the change log, or build the whole anew, and compare the two."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from app.errors import StoreBusy
from app.indexes.analysis import Analyzer
from app.indexes.port import CollectionIndex, Follower, IndexEntry
from app.stores.port import CollectionStore, IndexedChunk

BATCH_CHANGES = 4096
"""Lines of the log, or chunks of a rebuild, that are in memory at once."""

MOST_DIFFERENCES = 1000
"""Differences of one kind that `verify` lists."""

_POLL_SECONDS = 0.01
_LOOKS = 5
_LOOK_WAIT_SECONDS = 10.0
_NO_VECTOR = np.zeros(0, np.float32)

ReadChunks: TypeAlias = Callable[[int, int], list[IndexedChunk]]
"""Return chunks by key: those after a key, up to a number of them."""

_Difference: TypeAlias = tuple[str, str, int]

log = logging.getLogger(__name__)


Tell: TypeAlias = Callable[[int], None]
"""Hear how many more lines of the log, or chunks, are done."""


def _nobody(_: int) -> None:
    """Hear nothing."""


def catch_up(
    index: Follower, store: CollectionStore, analyzer: Analyzer, *, wait_seconds: float = 0.0, tell: Tell = _nobody
) -> int:
    """Bring the index to the store's present revision and return the one it is at.

    Where another thread or process is writing the index, that one's progress is awaited for `wait_seconds`; the
    returned revision is then the older one.
    """
    target = store.revision()
    deadline = time.monotonic() + wait_seconds
    while index.revision() != target:
        with index.writing() as granted:
            if granted:
                _follow(index, store, analyzer, target, tell)
                break
        if time.monotonic() >= deadline:
            break
        time.sleep(_POLL_SECONDS)
    return index.revision()


def rebuild(
    index: Follower, store: CollectionStore, analyzer: Analyzer, *, wait_seconds: float = 60.0, tell: Tell = _nobody
) -> None:
    """Make the index anew from the store, with no model call; raise `StoreBusy` where another one keeps writing."""
    with _granted(index, wait_seconds):
        _replace(index, store, analyzer, tell)


def build(
    index: Follower, chunks: ReadChunks, analyzer: Analyzer, revision: int, *, wait_seconds: float = 60.0
) -> None:
    """Make an index of a next space from that space's chunks, while nobody searches it yet."""
    with _granted(index, wait_seconds):
        index.replace(_pages(index, chunks, analyzer), revision)


def compact(index: Follower, store: CollectionStore, analyzer: Analyzer, *, wait_seconds: float = 60.0) -> None:
    """Bring the index up and leave nothing in its files of chunks that are gone; raise `StoreBusy` as `rebuild`."""
    with _granted(index, wait_seconds):
        _follow(index, store, analyzer, store.revision())
        if not index.erase():
            _replace(index, store, analyzer)
            index.erase()


@contextmanager
def _granted(index: Follower, wait_seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + wait_seconds
    while True:
        with index.writing() as granted:
            if granted:
                yield
                return
        if time.monotonic() >= deadline:
            raise StoreBusy("another process is writing the index", retry_after=5)
        time.sleep(_POLL_SECONDS)


def verify(index: CollectionIndex, store: CollectionStore, analyzer: Analyzer) -> list[dict[str, Any]]:
    """Return what each index lacks of the store or has beyond it: `{kind, document_id, chunk_id, detail}` each.

    Writes that go on meanwhile are no difference: where one came between, only what several looks agree on is told.
    """
    differences, settled = _look(index, store, analyzer)
    for _ in range(_LOOKS):
        if settled or not differences:
            break
        again, settled = _look(index, store, analyzer)
        differences &= again
    return _told(sorted(differences), store)


def _follow(index: Follower, store: CollectionStore, analyzer: Analyzer, target: int, tell: Tell = _nobody) -> None:
    # An empty index has nothing to keep, and building it skips what the log says of chunks that are gone.
    if index.revision() == 0 or index.revision() > store.revision() or index.is_worn():
        _replace(index, store, analyzer, tell)
    while (reached := index.revision()) < target:
        changes = store.changes(reached, BATCH_CHANGES)
        # Asked after reading: a log that was trimmed meanwhile may have lost lines of this batch.
        if not changes or store.oldest_revision() > reached:
            _replace(index, store, analyzer, tell)
            continue
        touched = {change.chunk_key for change in changes}
        chunks = store.indexed_chunks(sorted(touched), index.field)
        # Whatever the log says of a chunk that is gone: it must not be in the index.
        gone = touched.difference(chunk.chunk_key for chunk in chunks)
        index.apply(_entries(index, chunks, analyzer), sorted(gone), changes[-1].revision)
        tell(len(changes))


def _replace(index: Follower, store: CollectionStore, analyzer: Analyzer, tell: Tell = _nobody) -> None:
    started = time.perf_counter()
    # Read first: what changes during the build is then followed from the log, if need be a second time.
    revision = store.revision()
    index.replace(_batches(index, store, analyzer, tell), revision)
    seconds = round(time.perf_counter() - started, 3)
    log.info("an index was built", extra={"index": _name(index), "revision": revision, "seconds": seconds})


def _batches(index: Follower, store: CollectionStore, analyzer: Analyzer, tell: Tell) -> Iterator[list[IndexEntry]]:
    for page in _pages(index, partial(store.all_chunks, field=index.field), analyzer):
        yield page
        tell(len(page))


def _pages(index: Follower, chunks: ReadChunks, analyzer: Analyzer) -> Iterator[list[IndexEntry]]:
    after = -1
    while page := chunks(after, BATCH_CHANGES):
        yield _entries(index, page, analyzer)
        after = page[-1].chunk_key


def _entries(index: Follower, chunks: Sequence[IndexedChunk], analyzer: Analyzer) -> list[IndexEntry]:
    return [
        IndexEntry(
            chunk.chunk_key,
            chunk.document_key,
            analyzer.of(chunk.language).terms(chunk.indexed_text) if index.wants_terms else (),
            chunk.vector if index.wants_vectors else _NO_VECTOR,
        )
        for chunk in chunks
    ]


def _name(index: Follower) -> str:
    if index.wants_terms and index.wants_vectors:
        return "combined"
    if index.wants_terms:
        return "keyword"
    return "dense" if index.field == "context" else f"dense {index.field}"


def _look(index: CollectionIndex, store: CollectionStore, analyzer: Analyzer) -> tuple[set[_Difference], bool]:
    """Return the differences now, and whether nothing was written while they were looked for."""
    revision = store.revision()
    found: set[_Difference] = set()
    reached: set[int] = set()
    for follower in index.followers():
        catch_up(follower, store, analyzer, wait_seconds=_LOOK_WAIT_SECONDS)
        held, stored = follower.keys(), store.chunk_keys(follower.field)
        reached.add(follower.revision())
        name = _name(follower)
        found.update((name, "missing_in_index", int(key)) for key in np.setdiff1d(stored, held))
        found.update((name, "not_in_store", int(key)) for key in np.setdiff1d(held, stored))
    return found, reached == {revision} and store.revision() == revision


def _told(differences: Sequence[_Difference], store: CollectionStore) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for name in sorted({difference[0] for difference in differences}):
        missing = [key for index, kind, key in differences if (index, kind) == (name, "missing_in_index")]
        foreign = [key for index, kind, key in differences if (index, kind) == (name, "not_in_store")]
        told += [
            {
                "kind": "missing_in_index",
                "document_id": chunk.document_id,
                "chunk_id": chunk.chunk_id,
                "detail": f"the {name} index does not hold this chunk",
            }
            for chunk in store.found_chunks(missing[:MOST_DIFFERENCES])
        ]
        told += [
            {
                "kind": "not_in_store",
                "document_id": None,
                "chunk_id": None,
                "detail": f"the {name} index holds the chunk key {key}, which the store does not have",
            }
            for key in foreign[:MOST_DIFFERENCES]
        ]
    return told
