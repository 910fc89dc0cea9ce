"""`StoreUpkeep` on SQLite."""

import numpy as np
from sqlalchemy import select

from app.stores import changes, vectors
from app.stores.connection import Database
from app.stores.expressions import gathered, numbers
from app.stores.port import Keys
from app.stores.schema import chunks

_LINES_AT_ONCE = 100_000
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
            return vectors.staging_jobs(connection)

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
