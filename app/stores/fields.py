"""Where the vectors of each field stand, and how a chunk without one of its own is read."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, FromClause, func

from app.stores.port import VectorField
from app.stores.schema import content_vectors, parent_vectors, vectors


@dataclass(frozen=True, slots=True)
class FieldSource:
    """The rows of a field: chunk key and vector of each."""

    rows: FromClause
    key: ColumnElement[int]
    vector: ColumnElement[bytes]


# The clean text of a child without a context is its indexed text; that of one whose document is not enhanced yet is
# found by its indexed text until the document is sent again, so that no field ever misses a child.
SOURCES: dict[VectorField, FieldSource] = {
    "context": FieldSource(vectors, vectors.c.chunk_key, vectors.c.vector),
    "content": FieldSource(
        vectors.outerjoin(content_vectors, content_vectors.c.chunk_key == vectors.c.chunk_key),
        vectors.c.chunk_key,
        func.coalesce(content_vectors.c.vector, vectors.c.vector),
    ),
    "parent": FieldSource(parent_vectors, parent_vectors.c.chunk_key, parent_vectors.c.vector),
}
