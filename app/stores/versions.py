"""What a document was: its history, and what is kept to bring a version back without a model."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from app.filters import Filter
from app.stores.filter_rows import passes
from app.stores.port import DocumentVersion
from app.stores.schema import chunks, content_vectors, documents, kept_contexts, kept_vectors, vectors, versions


def history(
    connection: Connection, document_id: str, before: int | None, scope_filter: Filter | None
) -> Iterator[DocumentVersion]:
    """Yield the versions that were ready, newest first, those before a version, which had metadata that pass."""
    document = connection.execute(select(documents).where(documents.c.id == document_id)).one_or_none()
    if document is None:
        return
    lines = select(versions).where(versions.c.document_key == document.key).order_by(versions.c.version.desc())
    if before is not None:
        lines = lines.where(versions.c.version < before)
    for line in connection.execute(lines):
        if scope_filter is None or _passes(scope_filter, document, line):
            yield _as_version(line, is_current=line.version == document.version)


def _passes(scope_filter: Filter, document: Row[*tuple[Any, ...]], line: Row[*tuple[Any, ...]]) -> bool:
    return passes(
        scope_filter,
        line.metadata,
        document_id=document.id,
        # Remembered of the present version only.
        source_type=document.source_type,
        created_at=document.created_at,
        updated_at=line.created_at,
    )


def _as_version(line: Row[*tuple[Any, ...]], *, is_current: bool) -> DocumentVersion:
    return DocumentVersion(
        version=line.version,
        etag=line.etag,
        content_hash=line.content_hash,
        title=line.title,
        metadata=line.metadata,
        media_type=line.media_type,
        filename=line.filename,
        characters=line.characters,
        chunk_count=line.chunk_count,
        chunking=line.chunking,
        extraction=line.extraction,
        created_at=line.created_at,
        current=is_current,
        kept=line.kept,
    )


def keep_vectors(connection: Connection, document_key: int, fresh_hashes: AbstractSet[bytes]) -> None:
    """Keep the vectors of the present version that the next one does not have; to be called before it is written.

    They stand under the last version that had them, which is forgotten after every earlier one that needs them too.
    """
    version = connection.scalar(select(documents.c.version).where(documents.c.key == document_key))
    for table in (vectors, content_vectors):
        present = select(table.c.text_hash, table.c.vector).join(chunks, chunks.c.key == table.c.chunk_key)
        rows = {
            row.text_hash: row.vector
            for row in connection.execute(present.where(chunks.c.document_key == document_key))
            if row.text_hash not in fresh_hashes
        }
        if rows:
            connection.execute(
                insert(kept_vectors).prefix_with("OR IGNORE"),
                [
                    {"document_key": document_key, "version": version, "text_hash": text_hash, "vector": vector}
                    for text_hash, vector in rows.items()
                ],
            )


def forget(connection: Connection, keep: int, document_key: int | None = None, *, most_lines: int) -> int:
    """Let go of all but the `keep` versions before each document's present one; return how many were let go.

    The latest `most_lines` stay in the history without what quotes their texts; vectors and contexts go at once, and
    originals when they are next swept.
    """
    present = select(documents.c.version).where(documents.c.key == versions.c.document_key).scalar_subquery()
    oldest = present - keep
    let_go = {"kept": False, "extraction": None, "chunking": None}
    gone = update(versions).where(versions.c.kept, versions.c.version < oldest).values(let_go)
    if document_key is not None:
        gone = gone.where(versions.c.document_key == document_key)
    count = connection.execute(gone).rowcount
    if count:
        for table in (kept_vectors, kept_contexts):
            kept = select(versions.c.version).where(
                versions.c.document_key == table.c.document_key, versions.c.version == table.c.version, versions.c.kept
            )
            leftover = delete(table).where(~kept.exists())
            if document_key is not None:
                leftover = leftover.where(table.c.document_key == document_key)
            connection.execute(leftover)
    ended = delete(versions).where(~versions.c.kept, versions.c.version <= present - most_lines)
    if document_key is not None:
        ended = ended.where(versions.c.document_key == document_key)
    connection.execute(ended)
    return count


def content_hashes_after(connection: Connection, after: str, limit: int) -> list[str]:
    """Return content hashes that kept versions refer to, in order, those after one of them."""
    distinct = select(versions.c.content_hash).distinct().where(versions.c.kept, versions.c.content_hash > after)
    return list(connection.scalars(distinct.order_by(versions.c.content_hash).limit(limit)))
