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


def require_room_for_chunks(connection: Connection, most: int | None, document_id: str, chunks: int) -> None:
    """Raise `QuotaExceeded` where so many chunks of a document do not fit beside those of the others."""
    if most is None:
        return
    of_others = select(func.coalesce(func.sum(documents.c.chunk_count), 0)).where(documents.c.id != document_id)
    held = connection.scalar(of_others) or 0
    if held + chunks > most:
        raise QuotaExceeded.of("chunks", limit=most, used=held, needed=chunks)
