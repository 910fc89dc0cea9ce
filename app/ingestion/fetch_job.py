"""Do a fetch job: fetch a document's URL if it may have changed, and ingest what came like any other document."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.catalog.claims import attempts_exhausted
from app.catalog.collections import Collection
from app.catalog.job import Job
from app.catalog.sources import Source
from app.domain import Document, DocumentState
from app.errors import Cancelled, EmptyDocument, FootnoteError
from app.indexes.opening import OpenCollection
from app.ingestion.fetch import Fetched, Validators
from app.ingestion.ingest import ALWAYS, Ingestion
from app.ingestion.port import JobReport
from app.ingestion.quotas import Quotas
from app.ingestion.refresh import FetchOrder, fetcher_of, register_fetch
from app.ingestion.sources import Original
from app.ingestion.submission import JobPayload, Submission, etag_of, is_made_by, settings_hash
from app.ingestion.work import run_ingest

GONE = "url_not_found"


@dataclass(frozen=True, slots=True)
class _Arrived:
    """What the job fetched, as the job keeps it, so that a later attempt need not fetch it again."""

    url: str
    etag: str | None
    last_modified: str | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Task:
    """One job with everything it works on; `source` is `None` where it was forgotten or leads elsewhere by now."""

    ingestion: Ingestion
    collection: Collection
    opened: OpenCollection
    document_id: str
    order: FetchOrder
    source: Source | None
    job: Job
    report: JobReport

    @property
    def document(self) -> Document | None:
        return self.opened.store.document(self.document_id)


def run_fetch(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> dict[str, Any]:
    """Do the job up to the committed version and return its result; the caller then brings the index up.

    Raises the `FootnoteError` that says why it failed, after the document and its source tell the same.
    """
    task = _task(ingestion, opened, job, report)
    try:
        arrived = _arrived_before(job) or _fetch(task)
        result = run_ingest(ingestion, opened, replace(job, payload=arrived.payload), report)
    except Cancelled:
        raise
    except FootnoteError as error:
        if task.source is not None:
            is_gone, retry_after = error.code == GONE, error.retry_after or 0.0
            ingestion.sources.failed(task.source, error.problem(), is_gone=is_gone, retry_after=retry_after)
        raise
    if task.source is not None:
        ingestion.sources.succeeded(
            task.source,
            etag=arrived.etag,
            last_modified=arrived.last_modified,
            content_hash=arrived.payload["original"],
        )
    return result | {"url": arrived.url}


def _task(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> _Task:
    collection = ingestion.collections.by_id(job.collection_id)
    if collection is None or job.document_id is None:
        raise Cancelled("the collection was deleted")
    order = FetchOrder(**job.payload["order"])
    source = ingestion.sources.of_document(collection.id, job.document_id)
    if source is not None and source.url != order.url:
        source = None
    if source is None and order.is_refresh:
        raise Cancelled("the source was deleted, or leads elsewhere by now")
    return _Task(ingestion, collection, opened, job.document_id, order, source, job, report)


def _arrived_before(job: Job) -> _Arrived | None:
    """Return what an earlier attempt fetched before its process died; a job that is retried fetches again."""
    return _Arrived(**job.payload["arrived"]) if job.attempt > 1 and "arrived" in job.payload else None


def _fetch(task: _Task) -> _Arrived:
    """Fetch the URL and make the payload of an ingest of what it names."""
    registration = _registration(task)
    try:
        # As in an ingest: a deletion that came before the registration shows at this stage.
        task.report.stage("load")
        if task.job.exhausted:
            raise attempts_exhausted(task.ingestion.settings.job_attempts)
        task.report.stage("fetch", unit="bytes")
        fetched, original = _original(task)
    except Cancelled:
        task.ingestion.forget_unmade(task.opened.store, task.job)
        raise
    except FootnoteError as error:
        task.opened.store.set_state(task.document_id, registration, "failed", error.problem())
        raise
    document = task.document
    if document is not None and document.error is not None:
        task.opened.store.set_state(task.document_id, registration, "processing")
    known = task.source if fetched.is_unchanged else None
    arrived = _Arrived(
        url=fetched.url,
        etag=fetched.validators.etag or (known.etag if known else None),
        last_modified=fetched.validators.last_modified or (known.last_modified if known else None),
        payload=asdict(_payload(task, document, fetched, original)),
    )
    # The original is named where `sweep_originals` looks, which must not take it from under a long ingest.
    changes = {"arrived": asdict(arrived), "original": original.sha256}
    if not task.ingestion.jobs.amend(task.job.id, task.job.owner or "", changes):
        raise Cancelled("another process took the job over")
    return arrived


def _registration(task: _Task) -> int:
    known = task.document
    if known is not None and known.state is not DocumentState.FAILED:
        return known.key
    most = Quotas.of(task.collection).documents
    return register_fetch(task.opened.store, task.document_id, task.order, most_documents=most)


def _original(task: _Task) -> tuple[Fetched, Original]:
    """Fetch into the originals, or return the original that is there where the server says it is still the same."""
    originals = task.ingestion.originals_of(task.opened)
    source, document = task.source, task.document
    known = None
    if (
        source is not None
        and document is not None
        and source.content_hash is not None
        and source.content_hash == document.content_hash
        and originals.holds(source.content_hash)
    ):
        known = Validators(source.etag, source.last_modified)
    with _spooled(task.ingestion.spool) as file:
        fetched = fetcher_of(task.ingestion).fetch(task.order.url, file, known, task.report.advance)
        if not fetched.is_unchanged:
            if file.stat().st_size == 0:
                raise EmptyDocument("the URL names a document without bytes", hint="open the URL in a browser")
            return fetched, originals.adopt(file)
    digest = source.content_hash if source else None
    path = originals.path(digest or "")
    # Touched, as if it had come again, so that it is not swept before the job names it.
    os.utime(path)
    return fetched, Original(path.name, path.stat().st_size)


@contextmanager
def _spooled(folder: Path) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix="fetch-", dir=folder)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _payload(task: _Task, document: Document | None, fetched: Fetched, original: Original) -> JobPayload:
    """Return the payload of an ingest of the original; a refresh that brought nothing new keeps the document's etag."""
    before = document if document is not None and document.version else None
    is_refresh = task.order.is_refresh and before is not None
    extraction = (before.extraction if before else None) or {}
    keeps_names = fetched.is_unchanged and before is not None
    submission = Submission(
        task.document_id,
        original,
        media_type=extraction.get("declared_media_type") if keeps_names else fetched.media_type,
        filename=before.filename if before and keeps_names else fetched.filename,
        title=extraction.get("given_title") if is_refresh else task.order.title,
        metadata=_refreshed_metadata(task, before, fetched) if before and is_refresh else _metadata(task, fetched),
        expires_at=before.expires_at if before and is_refresh else None,
        chunking=before.chunking if before and is_refresh else task.order.chunking,
    )
    fingerprint = settings_hash(task.collection, submission)
    if before and is_refresh and original.sha256 == before.content_hash:
        store = task.opened.store
        is_made = is_made_by(
            store.settings_hash(task.document_id),
            fingerprint,
            has_language_model=task.ingestion.language_model is not None,
        )
        if is_made and before.etag is not None:
            return JobPayload.of(submission, before.etag, fingerprint, ALWAYS)
    etag = etag_of(original.sha256, fingerprint, submission.metadata, submission.expires_at)
    return JobPayload.of(submission, etag, fingerprint, ALWAYS)


def _metadata(task: _Task, fetched: Fetched) -> dict[str, Any]:
    return {"url": fetched.url, **task.order.metadata}


def _refreshed_metadata(task: _Task, before: Document, fetched: Fetched) -> dict[str, Any]:
    """Return what callers said of the document until now, without what its earlier content said."""
    found = ((before.extraction or {}).get("metadata")) or {}
    given = {name: value for name, value in before.metadata.items() if name not in found or found[name] != value}
    return given if "url" in task.order.metadata else given | {"url": fetched.url}
