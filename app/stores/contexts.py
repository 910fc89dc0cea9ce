"""Keep what a language model wrote of chunks: for a job until it has written its document, then with the chunks."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from app.domain import text_hash
from app.stores.expressions import insert_or_skip
from app.stores.schema import chunks, documents, staged_contexts


def stage_contexts(connection: Connection, job_id: str, fresh: Mapping[bytes, str]) -> None:
    """Keep contexts for a job, by SHA-256 of the clean text; one that the job has staged already stays."""
    rows = [{"job_id": job_id, "text_hash": digest, "context": context} for digest, context in fresh.items()]
    if rows:
        connection.execute(insert_or_skip(staged_contexts), rows)


def known_contexts(connection: Connection, job_id: str, document_id: str | None) -> dict[bytes, str]:
    """Return the contexts that the job staged, and those of the document's ready version if one is named."""
    found: dict[bytes, str] = {}
    if document_id is not None:
        written = select(chunks.c.text, chunks.c.written_context).join(documents)
        written = written.where(documents.c.id == document_id, chunks.c.written_context.is_not(None))
        found = {text_hash(text): context for text, context in connection.execute(written) if context is not None}
    staged = select(staged_contexts.c.text_hash, staged_contexts.c.context)
    return found | dict(connection.execute(staged.where(staged_contexts.c.job_id == job_id)).all())
