"""Keep vectors, rank them exactly, and remember the space that they are of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, union_all

from app.embedding_space import EmbeddingSpace, require_same_space, same_space
from app.errors import Reembedded
from app.stores.direct import DirectQuery
from app.stores.expressions import (
    cosine_distance,
    gathered,
    insert_or_skip,
    numbers,
    one_of,
    stored_list,
    stored_vector,
)
from app.stores.fields import SOURCES
from app.stores.port import Keys, VectorField
from app.stores.schema import (
    chunks,
    content_vectors,
    embedding_space,
    kept_vectors,
    parent_vectors,
    staged_contexts,
    staged_vectors,
    vectors,
)

HASHES_AT_ONCE = 500

# Statements of a search are built once: to build one takes longer than to run it.
_SPACE = select(embedding_space)
_FIELDS = select(select(content_vectors.c.chunk_key).exists(), select(parent_vectors.c.chunk_key).exists())
_DISTANCE = cosine_distance(vectors.c.vector, "vector").label("distance")
_DISTANCES = {
    field: DirectQuery(
        select(gathered(source.key), gathered(cosine_distance(source.vector, "vector")))
        .select_from(source.rows)
        .where(one_of(source.key, "chunk_keys"))
    )
    for field, source in SOURCES.items()
}
_VECTORS = select(vectors.c.chunk_key, vectors.c.vector).where(one_of(vectors.c.chunk_key, "chunk_keys"))
_RANKED = select(vectors.c.chunk_key, _DISTANCE).order_by(_DISTANCE, vectors.c.chunk_key).limit(bindparam("limit"))
_RANKED_IN_SCOPE = _RANKED.join(chunks).where(one_of(chunks.c.document_key, "document_keys"))


def loaded_vector(stored: bytes) -> NDArray[np.float32]:
    """Return a stored vector; read-only."""
    return np.frombuffer(stored, "<f4")


def parent_vector(children: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the direction between unit vectors (float32, one row each), as a unit vector where there is one."""
    middle: NDArray[np.float32] = children.mean(axis=0, dtype=np.float32)
    length = np.float32(np.linalg.norm(middle))
    return middle / length if length else middle


def vector_fields(connection: Connection) -> frozenset[VectorField]:
    """Return the fields beside `context` that hold vectors of their own."""
    has_content, has_parents = connection.execute(_FIELDS).one()
    fields: dict[VectorField, bool] = {"content": has_content, "parent": has_parents}
    return frozenset(field for field, is_held in fields.items() if is_held)


def vectors_of(connection: Connection, chunk_keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return the vectors of those of the children that exist, by chunk key."""
    return {key: loaded_vector(stored) for key, stored in connection.execute(_VECTORS, {"chunk_keys": chunk_keys})}


def known_vectors(connection: Connection, text_hashes: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
    """Return the vectors, live, kept or staged, of those of the texts that have one."""
    found: dict[bytes, NDArray[np.float32]] = {}
    for first in range(0, len(text_hashes), HASHES_AT_ONCE):
        asked = text_hashes[first : first + HASHES_AT_ONCE]
        held = [
            select(table.c.text_hash, table.c.vector).where(table.c.text_hash.in_(asked))
            for table in (vectors, content_vectors, kept_vectors, staged_vectors)
        ]
        for text_hash, stored in connection.execute(union_all(*held)):
            found[text_hash] = loaded_vector(stored)
    return found


def stage_vectors(connection: Connection, job_id: str, fresh: Mapping[bytes, NDArray[np.float32]]) -> None:
    """Keep vectors for a job; one that the job has staged already stays."""
    rows = [
        {"job_id": job_id, "text_hash": text_hash, "vector": stored_vector(vector)}
        for text_hash, vector in fresh.items()
    ]
    if rows:
        connection.execute(insert_or_skip(staged_vectors), rows)


def drop_staged(connection: Connection, job_id: str) -> None:
    """Forget what a job staged, vectors and contexts."""
    for table in (staged_vectors, staged_contexts):
        connection.execute(delete(table).where(table.c.job_id == job_id))


def staging_jobs(connection: Connection) -> list[str]:
    """Return the jobs that have staged something."""
    staged = select(staged_vectors.c.job_id).union(select(staged_contexts.c.job_id))
    return list(connection.scalars(staged))


def similarities(
    connection: Connection, vector: NDArray[np.float32], chunk_keys: Keys, field: VectorField
) -> dict[int, float]:
    """Return the exact cosine of each of the chunks that is in the field."""
    listed = stored_list(chunk_keys.tolist())
    ((keys, distances),) = _DISTANCES[field].rows(connection, vector=stored_vector(vector), chunk_keys=listed)
    return dict(zip(numbers(keys, np.int64).tolist(), (1 - numbers(distances, np.float64)).tolist(), strict=True))


def nearest(
    connection: Connection, vector: NDArray[np.float32], limit: int, document_keys: Keys | None
) -> list[tuple[int, float]]:
    """Return `(chunk_key, cosine)` of the nearest, best first; ties by the smaller key."""
    values: dict[str, object] = {"vector": stored_vector(vector), "limit": limit}
    ranked = _RANKED
    if document_keys is not None:
        ranked = _RANKED_IN_SCOPE
        values["document_keys"] = document_keys.tolist()
    return [(key, 1 - distance) for key, distance in connection.execute(ranked, values)]


def stored_space(connection: Connection) -> EmbeddingSpace | None:
    """Return the space of the vectors, `None` before the first."""
    row = connection.execute(_SPACE).one_or_none()
    return None if row is None else space_of(row)


def space_of(row: Row[*tuple[Any, ...]]) -> EmbeddingSpace:
    """Return the space that a row tells of."""
    return EmbeddingSpace(row.provider, row.model, row.dimensions, tuple(loaded_vector(row.fingerprint).tolist()))


def space_row(space: EmbeddingSpace) -> dict[str, Any]:
    """Return the one row that tells of a space."""
    fingerprint = stored_vector(np.array(space.fingerprint, np.float32))
    told = {"provider": space.provider, "model": space.model, "dimensions": space.dimensions}
    return {"id": 1, **told, "fingerprint": fingerprint}


def fix_space(connection: Connection, space: EmbeddingSpace) -> None:
    """Make this the space of the vectors; raises `EmbeddingModelMismatch` where another one is."""
    fixed = stored_space(connection)
    if fixed is None:
        connection.execute(insert(embedding_space).values(space_row(space)))
    else:
        require_same_space(fixed, space)


def expect_space(connection: Connection, space: EmbeddingSpace | None) -> None:
    """Raise `Reembedded` where the vectors are of another space than fresh ones; `None` expects nothing."""
    stored = stored_space(connection) if space is not None else None
    if space is not None and stored is not None and not same_space(stored, space):
        raise Reembedded(
            f"the collection moved from {space.model} to {stored.model} while vectors were made",
            hint="do it again with the model that the collection has now",
        )
