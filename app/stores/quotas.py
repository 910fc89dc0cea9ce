"""Hold a write against a limit of the collection, inside the write's transaction."""

from sqlalchemy import Connection, func, select

from app.errors import QuotaExceeded
from app.stores.schema import documents


def require_room_for_document(connection: Connection, most: int | None) -> None:
    """Raise `QuotaExceeded` where the collection holds as many documents, in any state, as it may."""
    if most is None:
        return
    held = connection.scalar(select(func.count()).select_from(documents)) or 0
    if held >= most:
        raise QuotaExceeded.of("documents", limit=most, used=held, needed=1)


def require_room_for_chunks(connection: Connection, most: int | None, document_key: int) -> None:
    """Raise `QuotaExceeded` where the chunks of a document, just written, do not fit beside those of the others."""
    if most is None:
        return
    of_document = documents.c.key == document_key
    own = connection.scalar(select(documents.c.chunk_count).where(of_document)) or 0
    held = connection.scalar(select(func.coalesce(func.sum(documents.c.chunk_count), 0)).where(~of_document)) or 0
    if held + own > most:
        raise QuotaExceeded.of("chunks", limit=most, used=held, needed=own)
