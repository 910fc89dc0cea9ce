"""One collection that is open in this process: its store and the indexes that follow it."""

import logging
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any

from app.embedding_space import EmbeddingSpace
from app.errors import NotFound, Unavailable
from app.indexes import sync
from app.indexes.analysis import Analyzer
from app.indexes.port import CollectionIndex
from app.processors import processors
from app.stores.port import CollectionStore, VectorField

INGEST_WAIT_SECONDS = 60.0
"""How long a writer waits for another process that is writing the same index."""

MOST_LANGUAGES = 4
"""Languages in which one query is read, those of the most documents; each adds the stems of its words."""

SEARCH_WAIT_SECONDS = 2.0
"""How long a search waits for what was written before it to be found; then it searches what there is."""

log = logging.getLogger(__name__)


Advance = Callable[[int, int], None]
"""Hear how much of how much is done; the whole is what it was at the beginning, and may be overtaken."""


class OpenCollection:
    """One collection's store and index, as this process sees them. Thread-safe."""

    def __init__(
        self, collection_id: str, folder: Path, store: CollectionStore, index: CollectionIndex, analyzer: Analyzer
    ) -> None:
        self.id = collection_id
        self.folder = folder
        self.store = store
        self.index = index.in_space(store.embedding_space()).with_fields(store.vector_fields())
        self.analyzer = analyzer
        self._opening = threading.Lock()
        self._starting = threading.Lock()
        self._following: threading.Thread | None = None

    def languages(self) -> tuple[str, ...]:
        """Return the languages of its documents beside the defaults of their scripts, the most frequent first."""
        return self.store.languages()

    def analyzers(self) -> tuple[Analyzer, ...]:
        """Return the analyzers by which its documents were read, the default one first, at most `MOST_LANGUAGES`.

        A language of fewer documents counts only in a query whose own words tell it.
        """
        others = [self.analyzer.of(language) for language in self.languages()[: MOST_LANGUAGES - 1]]
        return tuple(dict.fromkeys([self.analyzer, *others]))

    def catch_up(self, advance: Advance | None = None) -> int:
        """Bring the indexes to the store's present revision and return the one all have reached.

        `advance` hears how many changes of how many are in the indexes.
        """
        revision = self.store.revision()
        behind = sum(max(0, revision - index.revision()) for index in self.index.followers())
        return self._catch_up(INGEST_WAIT_SECONDS, _counted(advance, behind))

    def fresh(self, fields: AbstractSet[VectorField] = frozenset()) -> None:
        """See to it that a search in the given fields finds what was committed before this call.

        One revision is read where nothing has changed. Else a thread follows the log, one at a time for all
        searches, and is awaited for two seconds: an index that takes longer is searched as it is. Raises
        `Unavailable` for one that was never built.
        """
        if fields - self.index.fields.keys() - {"context"}:
            self._open_present()
        revision = self.store.revision()
        space = self.store.embedding_space()
        if space != self.index.space:
            self._open_present()
        deadline = time.monotonic() + SEARCH_WAIT_SECONDS
        # The first thread may have begun before that revision was there, the second has not.
        for _ in range(2):
            if self._behind(revision, fields) is None:
                return
            with processors.lent():
                self._follow().join(max(0.0, deadline - time.monotonic()))
        if self._behind(revision, fields) == 0:
            raise Unavailable("the collection's index is being built", retry_after=SEARCH_WAIT_SECONDS)

    def rebuild(self, advance: Advance | None = None) -> None:
        """Make the indexes anew from the store, while they go on answering; `advance` hears of all their chunks."""
        followers = self._open_present().followers()
        tell = _counted(advance, sum(len(self.store.chunk_keys(index.field)) for index in followers))
        for follower in followers:
            sync.rebuild(follower, self.store, self.analyzer, wait_seconds=INGEST_WAIT_SECONDS, tell=tell)

    def build_next(self, space: EmbeddingSpace) -> None:
        """Build the dense indexes of the store's next space beside the present ones, in files for every process."""
        revision = self.store.revision()
        names: list[VectorField] = ["context", *sorted(self.store.vector_fields())]
        for name in names:
            index = self.index.open_dense(name, space)
            sync.build(index, partial(self.store.upkeep.next_chunks, field=name), self.analyzer, revision)
            index.close()

    def remove_other_files(self) -> None:
        """Remove the files of dense indexes that no search uses any more: of other spaces, and of fields that went."""
        index = self._open_present()
        index.remove_others((index.dense, *index.fields.values()))

    def compact(self) -> None:
        """Leave nothing in the indexes' files of chunks that are gone."""
        self._open_present()
        for follower in self.index.followers():
            sync.compact(follower, self.store, self.analyzer, wait_seconds=INGEST_WAIT_SECONDS)
        self.remove_other_files()

    def verify(self) -> list[dict[str, Any]]:
        """Return the differences between indexes and store."""
        self._open_present()
        return sync.verify(self.index, self.store, self.analyzer)

    def close(self) -> None:
        """Close index and store."""
        following = self._following
        if following is not None:
            following.join(SEARCH_WAIT_SECONDS)
        self.index.close()
        self.store.close()

    def _open_present(self) -> CollectionIndex:
        """Return the indexes of the vectors that there are now: of their space, and of every field that has some."""
        with self._opening:
            self.index = self.index.in_space(self.store.embedding_space()).with_fields(self.store.vector_fields())
            return self.index

    def _behind(self, revision: int, fields: AbstractSet[VectorField]) -> int | None:
        """Return the revision of the searched index that has not reached `revision`, the oldest; `None` for none."""
        searched = (self.index.dense, self.index.keyword, *map(self.index.of_field, sorted(fields - {"context"})))
        behind = [reached for index in searched if index and (reached := index.revision()) != revision]
        # An index may be ahead of what was read a moment ago, or, of a restored store, for good: following tells.
        return min(behind, default=None)

    def _follow(self) -> threading.Thread:
        with self._starting:
            if self._following is None or not self._following.is_alive():
                self._following = threading.Thread(target=self._follow_log, name=f"follow-{self.id}", daemon=True)
                self._following.start()
            return self._following

    def _follow_log(self) -> None:
        try:
            self._catch_up(SEARCH_WAIT_SECONDS)
        except NotFound:
            log.info("a collection was deleted while its index followed it", extra={"collection_id": self.id})
        except Exception:
            # The search that waits for this goes on with the index as it is.
            log.exception("an index cannot follow its store", extra={"collection_id": self.id})

    def _catch_up(self, wait_seconds: float, tell: sync.Tell = lambda _: None) -> int:
        while True:
            index = self._open_present()
            try:
                reached = min(
                    sync.catch_up(each, self.store, self.analyzer, wait_seconds=wait_seconds, tell=tell)
                    for each in index.followers()
                )
            except Exception:
                # Vectors of another space do not fit into an index of the one before.
                if self.store.embedding_space() == index.space:
                    raise
            else:
                if self.store.embedding_space() == index.space:
                    return reached


def _counted(advance: Advance | None, total: int) -> sync.Tell:
    """Return what adds up how much more is done and passes the sum on."""
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if advance is not None:
            advance(min(done, total), total)

    return tell
