"""Collections that are open in this process: store and index together, least recently used closed first."""

import contextlib
import logging
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from app.embedding_space import EmbeddingSpace
from app.errors import NameTaken, NotFound, Unavailable
from app.indexes import sync
from app.indexes.analysis import Analyzer
from app.indexes.port import CollectionIndex
from app.stores.port import CollectionStore, VectorField

INGEST_WAIT_SECONDS = 60.0
"""How long a writer waits for another process that is writing the same index."""

SEARCH_WAIT_SECONDS = 2.0
"""How long a search waits for what was written before it to be found; then it searches what there is."""

_TRASH = ".trash-"
_MAKING = ".making-"
_MAKING_SECONDS = 3600.0

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


@dataclass(slots=True)
class _Place:
    """A collection's place in the pool; `opening` lets one thread open it while others wait for that one.

    `left_at` is when somebody who wants it kept open last left it, by the monotonic clock.
    """

    opening: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    left_at: float | None = None
    opened: OpenCollection | None = None


class OpenCollections:
    """The pool of open collections, and the folders they live in: one per collection id, which is never used twice.

    `create_store`, `open_store` and `open_index` get a collection's folder. At most `limit` stay open; none in use is
    closed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        create_store: Callable[[Path], CollectionStore],
        open_store: Callable[[Path], CollectionStore],
        open_index: Callable[[Path], CollectionIndex],
        analyzer: Analyzer,
        limit: int,
    ) -> None:
        self._folder = folder
        self._create_store = create_store
        self._open_store = open_store
        self._open_index = open_index
        self._analyzer = analyzer
        self._limit = limit
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Place] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def get(self, collection_id: str, *, keep: bool = True) -> Iterator[OpenCollection]:
        """Hold a collection open; raises `NotFound` where it has no folder.

        Afterwards it stays open for who comes next, unless nobody has come but who does not want to `keep` it.
        """
        folder = self._folder / collection_id
        if collection_id.startswith(".") or folder.parent != self._folder or not folder.is_dir():
            self._forget(collection_id)
            raise NotFound(f"there is no collection {collection_id!r}")
        with self._lock:
            place = self._places.setdefault(collection_id, _Place())
            self._places.move_to_end(collection_id)
            place.users += 1
        try:
            with place.opening:
                if place.opened is None:
                    place.opened = self._open(collection_id, folder)
            yield place.opened
        finally:
            if keep:
                place.left_at = time.monotonic()
            self._leave(collection_id, place)

    @contextlib.contextmanager
    def making(self, fill: Callable[[Path], None] | None = None) -> Iterator[Callable[[str], None]]:
        """Make a new collection's folders and empty store; the function that is given puts them in place by its id.

        It raises `NameTaken`. What is not in place at the end of the block is removed. `fill` gets the folder first.
        """
        made = self._folder / f"{_MAKING}{secrets.token_hex(8)}"

        def put_in_place(collection_id: str) -> None:
            try:
                made.rename(self._folder / collection_id)
            except OSError:
                raise NameTaken(f"a collection {collection_id!r} is there already") from None

        try:
            for name in ("originals", "index"):
                (made / name).mkdir(parents=True)
            self._create_store(made).close()
            if fill is not None:
                fill(made)
            yield put_in_place
        finally:
            if made.exists():
                _remove(made)

    def create(self, collection_id: str) -> None:
        """Make a new collection, all at once; raises `NameTaken`."""
        with self.making() as put_in_place:
            put_in_place(collection_id)

    def delete(self, collection_id: str) -> None:
        """Remove a collection's folder; what still uses it ends with errors of its own."""
        with self.deleting(collection_id) as take_away:
            take_away()

    @contextlib.contextmanager
    def deleting(self, collection_id: str) -> Iterator[Callable[[], None]]:
        """Give the function that takes a collection's folder away, which is removed at the end of the block."""
        trash = self._folder / f"{_TRASH}{collection_id}-{secrets.token_hex(4)}"

        def take_away() -> None:
            # Renamed first: a crash leaves no half of a collection, and no file can come back under its name.
            with contextlib.suppress(FileNotFoundError):
                (self._folder / collection_id).rename(trash)

        yield take_away
        self._forget(collection_id)
        _remove(trash)

    def close(self) -> None:
        """Close every collection that is not in use."""
        with self._lock:
            places = [place for place in self._places.values() if place.users == 0]
            self._places.clear()
        for place in places:
            _close(place)

    def close_idle(self, seconds: float) -> int:
        """Close collections that nobody has used for so long, whose vectors leave memory; return how many."""
        latest = time.monotonic() - seconds
        with self._lock:
            names = [
                name
                for name, place in self._places.items()
                if place.users == 0 and (place.left_at is None or place.left_at <= latest)
            ]
            idle = [self._places.pop(name) for name in names]
        for place in idle:
            _close(place)
        return len(idle)

    def recover(self, known: contextlib.AbstractContextManager[AbstractSet[str]]) -> None:
        """Finish or undo what dead processes left half done.

        Inside `known`, which gives the ids of all collections, none is made or deleted. A folder that was taken away
        comes back if its collection is still known.
        """
        removable: list[Path] = []
        with known as ids:
            for trash in self._folder.glob(f"{_TRASH}*"):
                place = self._folder / trash.name.removeprefix(_TRASH).rpartition("-")[0]
                if place.name in ids and not place.exists():
                    trash.rename(place)
                else:
                    removable.append(trash)
        for trash in removable:
            _remove(trash)
        for made in self._folder.glob(f"{_MAKING}*"):
            # A young one may be another process's, which is just making it.
            if made.stat().st_mtime < time.time() - _MAKING_SECONDS:
                _remove(made)

    def _open(self, collection_id: str, folder: Path) -> OpenCollection:
        store = self._open_store(folder)
        try:
            opened = OpenCollection(collection_id, folder, store, self._open_index(folder), self._analyzer)
            for index in opened.index.followers():
                # The store was restored to an earlier state; once it has written as much again, nothing would tell.
                if index.revision() > store.revision():
                    sync.rebuild(index, store, self._analyzer)
        except BaseException:
            store.close()
            raise
        return opened

    def _forget(self, collection_id: str) -> None:
        with self._lock:
            place = self._places.pop(collection_id, None)
            idle = place is not None and place.users == 0
        if place is not None and idle:
            _close(place)

    def _leave(self, collection_id: str, place: _Place) -> None:
        closing: list[_Place] = []
        with self._lock:
            place.users -= 1
            known = self._places.get(collection_id) is place
            if place.users == 0 and (not known or place.opened is None or place.left_at is None):
                closing.append(place)
                if known:
                    del self._places[collection_id]
            for name in [name for name, other in self._places.items() if other.users == 0]:
                if len(self._places) <= self._limit:
                    break
                closing.append(self._places.pop(name))
        for idle in closing:
            _close(idle)


def _counted(advance: Advance | None, total: int) -> sync.Tell:
    """Return what adds up how much more is done and passes the sum on."""
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if advance is not None:
            advance(min(done, total), total)

    return tell


def _close(place: _Place) -> None:
    if place.opened is not None:
        place.opened.close()


def _remove(folder: Path) -> None:
    # Another process may add a last file while this one removes them.
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    log.warning("a deleted collection's folder could not be removed whole", extra={"folder": str(folder)})
