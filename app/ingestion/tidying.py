"""Remove what is over: expired documents, and what crashes and refusals leave behind."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from app.catalog.collections import Collection
from app.errors import Conflict, FootnoteError, NotFound
from app.indexes.opening import OpenCollection
from app.ingestion.compact import trim
from app.ingestion.ingest import Ingestion
from app.ingestion.spool import clear_dead

log = logging.getLogger(__name__)

ORPHAN_SECONDS = 60.0
PAGE = 200


def tidy(ingestion: Ingestion, is_stopping: Callable[[], bool]) -> None:
    """Go through the spool and every collection once; a collection that cannot be opened is left for the next time."""
    clear_dead(ingestion.spool.parent)
    for collection in ingestion.collections.every():
        if is_stopping():
            return
        try:
            with ingestion.opened.get(collection.id, keep=False) as opened:
                _delete_expired(ingestion, collection, opened)
                opened.store.forget_versions(collection.keep_versions)
                ingestion.sweep_originals(collection.id, opened)
                _fail_orphans(ingestion, collection, opened)
                trim(ingestion, opened)
        except NotFound:
            continue
        except FootnoteError as error:
            log.warning("a collection could not be tidied", extra={"collection": collection.name, "code": error.code})


def _delete_expired(ingestion: Ingestion, collection: Collection, opened: OpenCollection) -> None:
    now = datetime.now(UTC)
    unchanged_since = None if collection.max_age is None else now - collection.max_age
    while expired := opened.store.expired_documents(now, PAGE, unchanged_since=unchanged_since):
        deleted = ingestion.delete(collection, expired)
        log.info("expired documents were deleted", extra={"collection": collection.name, "documents": deleted})


def _fail_orphans(ingestion: Ingestion, collection: Collection, opened: OpenCollection) -> None:
    """Say `failed` of documents that wait for a job which was never queued, because the process died before it."""
    latest = datetime.now(UTC) - timedelta(seconds=ORPHAN_SECONDS)
    cursor: str | None = None
    while True:
        page = opened.store.list_documents(None, limit=PAGE, cursor=cursor, states=("pending", "processing"))
        for document in page.data:
            if document.updated_at < latest and not ingestion.jobs.unfinished(collection.id, document.id):
                error = Conflict(
                    "the service ended before the document's job was queued",
                    code="interrupted",
                    hint="send the document again",
                )
                opened.store.set_state(document.id, document.key, "failed", error.problem())
        cursor = page.next_cursor
        if cursor is None:
            return
