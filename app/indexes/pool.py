"""The collections that are open in this process, least recently used closed first, and the folders they live in."""

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
from pathlib import Path

from app.errors import NameTaken, NotFound
from app.indexes import sync
from app.indexes.analysis import Analyzer
from app.indexes.opening import OpenCollection
from app.indexes.port import CollectionIndex
from app.stores.port import CollectionStore

_TRASH = ".trash-"
_MAKING = ".making-"
_MAKING_SECONDS = 3600.0

log = logging.getLogger(__name__)


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
