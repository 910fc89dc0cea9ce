"""What is measured beside each other: one short port, and the service itself behind it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import numpy as np
from grown_collection import FIELD, GrownDocument, GrownQueries, fill_with, slot_of
from numpy.typing import NDArray

from app.bootstrap import build_services
from app.filters import Condition, Filter, Operator
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import search
from app.settings import load_settings

Mode: TypeAlias = Literal["keyword", "dense", "hybrid"]

COLLECTION = "c"
"""The collection's id in its data folder."""

_SETTINGS = load_settings({})


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter: `documents` of them by their numbers, or `percent` of them by the field `slot`."""

    percent: float
    documents: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Return how much it lets through."""
        return f"{self.percent:g} %"

    def admits(self, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the documents it lets through."""
        if self.documents:
            return np.isin(documents, self.documents)
        admitted: NDArray[np.bool_] = slot_of(documents) < self.percent
        return admitted


def selection(percent: float, documents: int) -> Selection:
    """Return the filter of that selectivity; below one percent it names documents, at least one."""
    if percent >= 1:
        return Selection(percent)
    wanted = max(1, round(documents * percent / 100))
    return Selection(percent, tuple(range(documents // 2, documents // 2 + wanted)))


class Engine(Protocol):
    """One engine on a folder of its own. Passages are numbered in their order from 0."""

    name: str
    how: str
    """How it is configured, in a line."""

    modes: tuple[Mode, ...]
    threads: bool
    """Whether one open engine may be asked by several threads."""

    def build(self, folder: Path, documents: Iterable[GrownDocument]) -> None:
        """Take in all documents and make every index."""
        ...

    def open(self, folder: Path, queries: GrownQueries) -> None:
        """Open what was built, ready to search."""
        ...

    def search(self, question: str, mode: Mode, top_k: int, chosen: Selection | None) -> Sequence[int]:
        """Return the numbers of the passages found, best first; their texts were read too."""
        ...

    def close(self) -> None:
        """Release what `open` took."""
        ...


class Footnote:
    """The service's own path from plan to passages, in process."""

    name = "Footnote"
    how = "as it comes: hybrid of 100 candidates a leg, weights by the strength of the best keyword hit"
    modes: tuple[Mode, ...] = ("hybrid", "dense", "keyword")
    threads = True

    def build(self, folder: Path, documents: Iterable[GrownDocument]) -> None:
        """Fill a new collection and let its indexes catch up."""
        pool = _pool(folder)
        pool.create(COLLECTION)
        with pool.get(COLLECTION) as opened:
            fill_with(opened, documents)
            opened.catch_up()
        pool.close()

    def open(self, folder: Path, queries: GrownQueries) -> None:
        """Open the collection as the service does."""
        self._pool = _pool(folder)
        self._holding = self._pool.get(COLLECTION)
        self._opened: OpenCollection = self._holding.__enter__()
        self._models = Models(queries)
        self._first_key = self._opened.store.all_chunks(-1, 1)[0].chunk_key

    def search(self, question: str, mode: Mode, top_k: int, chosen: Selection | None) -> Sequence[int]:
        """Search with default settings."""
        plan = build_plan(question, _SETTINGS, mode=mode, top_k=top_k, search_filter=_filter(chosen))
        result = search(self._opened, self._models, COLLECTION, plan)
        return [int(passage.chunk_id[1:]) - self._first_key for passage in result.passages]

    def close(self) -> None:
        """Close the collection."""
        self._holding.__exit__(None, None, None)
        self._pool.close()


def _pool(folder: Path) -> OpenCollections:
    return build_services(load_settings({"FOOTNOTE_DATA": str(folder)})).opened


def _filter(chosen: Selection | None) -> Filter | None:
    if chosen is None:
        return None
    if chosen.documents:
        return Condition("$document_id", Operator.IN, [f"document-{number}" for number in chosen.documents])
    return Condition(FIELD, Operator.LT, chosen.percent)
