"""Keep what a language model wrote of chunks: for a job, with a version, and for versions that are kept."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from app.domain import text_hash
from app.stores.expressions import insert_or_skip
from app.stores.prepared import PreparedDocument
from app.stores.schema import chunks, documents, kept_contexts, staged_contexts, versions

_WRITTEN = (
    select(chunks.c.text, chunks.c.written_context, documents.c.version)
    .join(documents)
    .where(chunks.c.written_context.is_not(None))
)


def stage_contexts(connection: Connection, job_id: str, fresh: Mapping[bytes, str]) -> None:
    """Keep contexts for a job, by SHA-256 of the clean text; one that the job has staged already stays."""
    rows = [{"job_id": job_id, "text_hash": digest, "context": context} for digest, context in fresh.items()]
    if rows:
        connection.execute(insert_or_skip(staged_contexts), rows)


def keep_contexts(connection: Connection, prepared: PreparedDocument) -> None:
    """Keep what was written of the present version and not so of the next one; to be called before it is written."""
    fresh = {text_hash(child.text): child.written_context for child in prepared.children}
    written = _WRITTEN.where(documents.c.key == prepared.registration)
    rows = [
        {"document_key": prepared.registration, "version": version, "text_hash": digest, "context": context}
        for text, context, version in connection.execute(written)
        if fresh.get(digest := text_hash(text)) != context
    ]
    if rows:
        connection.execute(insert_or_skip(kept_contexts), rows)


def known_contexts(connection: Connection, job_id: str, document_id: str, title: str) -> dict[bytes, str]:
    """Return the contexts that the job staged, and those of the document's versions that had this title."""
    kept = select(kept_contexts.c.text_hash, kept_contexts.c.context).join(
        versions,
        (versions.c.document_key == kept_contexts.c.document_key) & (versions.c.version == kept_contexts.c.version),
    )
    kept = kept.join(documents, documents.c.key == kept_contexts.c.document_key)
    kept = kept.where(documents.c.id == document_id, versions.c.title == title).order_by(kept_contexts.c.version)
    present = connection.execute(_WRITTEN.where(documents.c.id == document_id, documents.c.title == title))
    staged = select(staged_contexts.c.text_hash, staged_contexts.c.context)
    return {
        **dict(connection.execute(kept).all()),
        **{text_hash(text): context for text, context, _ in present if context is not None},
        **dict(connection.execute(staged.where(staged_contexts.c.job_id == job_id)).all()),
    }
