"""Accept URLs as documents, and queue their fetching: at once, when asked, or when it is time; see `fetch_job.py`."""

import hashlib
import logging
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from app.catalog.collections import Collection
from app.catalog.job import Job
from app.catalog.sources import Source
from app.domain import Metadata
from app.errors import Conflict, NotFound, QueueFull
from app.ingestion.fetch import Fetcher
from app.ingestion.ingest import Ingestion
from app.ingestion.quotas import Quotas
from app.ingestion.submission import Submitted, unless_refused
from app.stores.port import CollectionStore

log = logging.getLogger(__name__)

FETCH = "fetch"
"""The kind of job that fetches a document's source and ingests what came."""

DUE_AT_ONCE = 20
LONGEST_NAME = 200

_UNSAFE = re.compile(r"[^\w.~-]+")


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A URL to make a document of; without an id of its own the document gets one made of the URL."""

    url: str
    document_id: str | None = None
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    chunking: dict[str, Any] | None = None
    refresh_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """What a fetch job was asked for. A refresh keeps what the document was given besides its content by now."""

    url: str
    title: str | None
    metadata: dict[str, Any]
    chunking: dict[str, Any] | None
    is_refresh: bool


def fetcher_of(ingestion: Ingestion) -> Fetcher:
    """Return what fetches; raise `Conflict` where this service does not."""
    if ingestion.fetcher is None:
        raise Conflict(
            "this service does not fetch URLs",
            code="fetch_disabled",
            hint="set FOOTNOTE_FETCH=1 to let it, or put the document yourself",
        )
    return ingestion.fetcher


def id_of_url(url: str) -> str:
    """Return the id of a document that comes from a URL: readable, and another for each URL."""
    parts = urlsplit(url)
    readable = _UNSAFE.sub("_", parts.netloc + unquote(parts.path)).strip("_")
    return f"{readable[-LONGEST_NAME:]}-{hashlib.sha256(url.encode()).hexdigest()[:10]}"


def accept_fetch(ingestion: Ingestion, collection: Collection, request: FetchRequest) -> Submitted:
    """Make the document come from the URL and queue its fetching.

    Raises `Conflict` where fetching is off, `UrlBlocked` for a URL that is refused as it stands, `QuotaExceeded`, and
    `QueueFull`.
    """
    url = fetcher_of(ingestion).checked(request.url)
    document_id = request.document_id or id_of_url(url)
    order = FetchOrder(url, request.title, dict(request.metadata), request.chunking, is_refresh=False)
    with ingestion.opened.get(collection.id) as opened:
        most = Quotas.of(collection).documents
        registering = partial(register_fetch, opened.store, document_id, order, most_documents=most)
        with unless_refused(opened.store, document_id, registering):
            source = partial(
                ingestion.sources.put_in,
                collection_id=collection.id,
                document_id=document_id,
                url=url,
                title=order.title,
                metadata=order.metadata,
                chunking=order.chunking,
                refresh_seconds=request.refresh_seconds,
            )
            job = _enqueue(ingestion, collection, document_id, order, source)
        document = opened.store.document(document_id)
    if document is None:
        raise NotFound(f"the document {document_id!r} was deleted meanwhile")
    return Submitted(document, "pending", job)


def register_fetch(
    store: CollectionStore, document_id: str, order: FetchOrder, *, most_documents: int | None = None
) -> int:
    """Make a document known whose bytes are still to come, and return its registration."""
    return store.register_document(
        document_id,
        title=order.title or "",
        metadata={"url": order.url, **order.metadata},
        media_type="application/octet-stream",
        filename=None,
        most_documents=most_documents,
    )


def queue_refresh(ingestion: Ingestion, collection: Collection, source: Source) -> Job:
    """Queue the fetching of a source, unless it is queued or in work already; raises `Conflict` and `QueueFull`."""
    fetcher_of(ingestion)
    for job in ingestion.jobs.unfinished(collection.id, source.document_id):
        if job.kind == FETCH:
            return job
    order = FetchOrder(source.url, source.title, source.metadata, source.chunking, is_refresh=True)
    return _enqueue(ingestion, collection, source.document_id, order)


def refresh_due(ingestion: Ingestion) -> int:
    """Queue every source whose time has come, where fetching is on; return how many there were."""
    if ingestion.fetcher is None:
        return 0
    queued = 0
    for source in ingestion.sources.claim_due(DUE_AT_ONCE):
        collection = ingestion.collections.by_id(source.collection_id)
        if collection is None:
            continue
        try:
            queue_refresh(ingestion, collection, source)
        except QueueFull:
            log.warning("the queue is full; sources are fetched later", extra={"collection": collection.name})
            break
        except NotFound:
            continue
        queued += 1
    return queued


def _enqueue(
    ingestion: Ingestion,
    collection: Collection,
    document_id: str,
    order: FetchOrder,
    beside: Callable[[Any], object] = lambda _: None,
) -> Job:
    return ingestion.jobs.enqueue(
        FETCH,
        collection_id=collection.id,
        collection=collection.name,
        document_id=document_id,
        payload={"order": asdict(order)},
        beside=beside,
    )
