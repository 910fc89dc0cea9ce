"""`StoreUpkeep` on SQLite."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from app.embedding_space import EmbeddingSpace
from app.stores import changes, reembedding
from app.stores.connection import Database
from app.stores.expressions import gathered, numbers
from app.stores.port import IndexedChunk, Keys, VectorField
from app.stores.schema import chunks
from app.stores.upkeep import EmbedNext, NextText
from app.stores.vectors import staging_jobs

_LINES_AT_ONCE = 100_000
_PARENTS_AT_ONCE = 500
_PLACES = select(gathered(chunks.c.key), gathered(chunks.c.document_key), gathered(chunks.c.ordinal)).where(
    chunks.c.kind == "child"
)


class SqliteUpkeep:
    """Look after one collection's file; the port says what each method promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def chunk_order(self) -> tuple[Keys, Keys]:
        """Return the keys of all children in order, and those of their documents."""
        with self._database.reading(limited=False) as connection:
            gathered_places = connection.execute(_PLACES).one()
        keys, document_keys, ordinals = (numbers(column, np.int64) for column in gathered_places)
        order = np.lexsort((ordinals, document_keys))
        return keys[order], document_keys[order]

    def staging_jobs(self) -> list[str]:
        """Return the ids of jobs that have staged something."""
        with self._database.reading() as connection:
            return staging_jobs(connection)

    def trim_changes(self, keep: int) -> int:
        """Forget all but the newest lines of the change log."""
        trimmed = 0
        while True:
            # Some at a time, so that nobody waits long to write.
            with self._database.writing() as connection:
                batch = changes.trim(connection, keep, _LINES_AT_ONCE)
            trimmed += batch
            if batch < _LINES_AT_ONCE:
                return trimmed

    def compact(self) -> None:
        """Write the file anew without what was deleted."""
        self._database.compact()

    # --- move to another embedding space ---

    def begin_next(self, space: EmbeddingSpace) -> EmbeddingSpace:
        """Begin to gather vectors of another space, or go on."""
        with self._database.writing() as connection:
            return reembedding.begin(connection, space)

    def forget_next(self) -> None:
        """Forget everything of a next space."""
        with self._database.writing() as connection:
            reembedding.forget(connection)

    def lacking_texts(self, after: int, limit: int) -> list[NextText]:
        """Return texts without a vector in the next space."""
        with self._database.reading(snapshot=True, limited=False) as connection:
            return reembedding.lacking_texts(connection, after, limit)

    def keep_next(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep vectors of the next space."""
        with self._database.writing() as connection:
            reembedding.keep(connection, vectors)

    def keep_next_parents(self) -> None:
        """Derive the next vectors of parents, some in each transaction."""
        derived = _PARENTS_AT_ONCE
        while derived == _PARENTS_AT_ONCE:
            with self._database.writing() as connection:
                derived = reembedding.keep_parents(connection, _PARENTS_AT_ONCE)

    def next_counts(self) -> tuple[int, int]:
        """Return how many vectors have a next one, and how many there are."""
        with self._database.reading(snapshot=True, limited=False) as connection:
            return reembedding.counts(connection)

    def next_chunks(self, after: int, limit: int, field: VectorField) -> list[IndexedChunk]:
        """Return the field's chunks with their next vectors."""
        with self._database.reading(limited=False) as connection:
            return reembedding.next_chunks(connection, after, limit, field)

    def adopt_next(self, embed: EmbedNext | None = None) -> bool:
        """Make the next space the present one."""
        with self._database.writing() as connection:
            if embed is not None:
                reembedding.complete(connection, embed)
            return reembedding.adopt(connection)
