"""What the steps of one search share: what they work on, and what they have to tell."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.domain import Notice
from app.embedding_space import EmbeddingSpace
from app.errors import NotFound
from app.indexes.opening import OpenCollection
from app.indexes.port import NO_RESTRICTION, Restriction
from app.inference.port import Embedder, LanguageModel
from app.inference.reranker_registry import Rerankers
from app.retrieval.plan import SearchPlan
from app.retrieval.trace import Trace
from app.stores.port import CollectionStore, FoundChunk, Keys, Scope
from app.telemetry import StageTimer

if TYPE_CHECKING:
    from app.retrieval.query_terms import QueryTerms


@dataclass(frozen=True, slots=True)
class Models:
    """What a search may ask; keywords alone need none of it."""

    embedder: Embedder | None = None
    language_model: LanguageModel | None = None
    rerankers: Rerankers | None = None
    transform_seconds: float = 20
    """Time limit of all that the language model is asked about the query."""


@dataclass(frozen=True, slots=True)
class SearchQueries:
    """`texts` go to both legs, the first is the main one; `hypothetical` answers go to the dense leg alone."""

    texts: tuple[str, ...]
    hypothetical: tuple[str, ...] = ()


@dataclass(slots=True)
class SharedWork:
    """What the searches of one request in several collections do once.

    `queries` holds what to look for by what was asked, which the defaults of a collection may change, and `vectors`
    those of each in each space.
    """

    queries: dict[Hashable, SearchQueries] = field(default_factory=dict)
    vectors: dict[tuple[EmbeddingSpace, SearchQueries], NDArray[np.float32]] = field(default_factory=dict)


@dataclass(slots=True)
class SearchRun:
    """One search at work. `chunks` remembers what was read, so that no step reads it again."""

    opened: OpenCollection
    models: Models
    plan: SearchPlan
    scope: Scope
    timer: StageTimer
    trace: Trace
    warnings: list[Notice] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    shared: SharedWork | None = None
    restriction: Restriction = NO_RESTRICTION
    """What every hit must hold and must not, in any leg."""
    chunks: dict[int, FoundChunk] = field(default_factory=dict)
    terms: "dict[str, QueryTerms]" = field(default_factory=dict)
    """What the keyword leg looked up for each text."""
    inside: Keys | None = None
    """The chunks that a narrowed search may see, sorted; `None` for all of the scope."""
    query_vectors: NDArray[np.float32] | None = None
    """float32, one row per text that the dense leg looked for; the first is the query's own."""

    @property
    def store(self) -> CollectionStore:
        """Return the collection's store."""
        return self.opened.store

    def warn(self, code: str, detail: str, **extra: object) -> None:
        """Tell something that the caller should know although the work was done."""
        self.warnings.append(Notice(code, detail, extra))

    def read(self, keys: Sequence[int]) -> list[FoundChunk]:
        """Return the chunks of these keys that still exist, in the order asked."""
        missing = [key for key in keys if key not in self.chunks]
        if missing:
            self.chunks |= {chunk.chunk_key: chunk for chunk in self.store.found_chunks(missing)}
        return [self.chunks[key] for key in keys if key in self.chunks]

    def text_around(self, chunk: FoundChunk, start: int, end: int) -> str | None:
        """Return the piece of the chunk's document, which holds the chunk, `None` where that has changed meanwhile."""
        try:
            text = self.store.text(chunk.document_id, start, end)
        except NotFound:
            return None
        return text if text[chunk.start - start : chunk.end - start] == chunk.text else None
