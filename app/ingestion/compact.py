"""The verb `compact`: leave nothing on the disk of what was deleted or replaced, and give the room back."""

from collections.abc import Iterable, Sequence
from typing import Any

from app.catalog.job import Job, JobState
from app.domain import Document
from app.errors import Cancelled
from app.filters import Condition, Operator
from app.indexes.opening import OpenCollection
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.ingestion.report import Postponed
from app.ingestion.spool import clear_dead

FEWEST_CHANGES = 10_000
"""Lines that the change log keeps at least: following fewer costs less than any rebuild."""


def run_compact(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> dict[str, Any]:
    """Do a `compact` job. Every step can be done again, so a killed one begins anew.

    Raises `Postponed` while an original may still belong to a request that has not written its job yet.
    """
    collection = ingestion.collections.by_id(opened.id)
    if collection is None:
        raise Cancelled("the collection was deleted")
    before = opened.store.stats()
    report.stage("catalog")
    erased = ingestion.collections.erase_past(
        collection,
        lambda jobs: _retried(opened, jobs),
        lambda document_ids: _documents(opened, document_ids).keys(),
    )
    report.stage("originals")
    opened.store.forget_versions(collection.keep_versions)
    removed = ingestion.sweep_originals(opened.id, opened)
    clear_dead(ingestion.spool.parent)
    report.stage("store")
    drop_leftovers(ingestion, opened)
    # Jobs on the whole collection run one after the other, so what is gathered now is of one that failed.
    opened.store.upkeep.forget_next()
    opened.catch_up()
    opened.store.upkeep.trim_changes(1)
    opened.store.upkeep.compact()
    report.stage("index")
    opened.compact()
    _await_young_originals(ingestion, opened, job)
    after = opened.store.stats()
    return {
        "jobs_forgotten": erased,
        "originals_removed": removed,
        "database_bytes": {"before": before.database_bytes, "after": after.database_bytes},
        "original_bytes": {"before": before.original_bytes, "after": after.original_bytes},
    }


def trim(ingestion: Ingestion, opened: OpenCollection) -> None:
    """Keep what only grows within bounds: a log longer than the chunks that are there is slower than a rebuild."""
    drop_leftovers(ingestion, opened)
    store = opened.store
    keep = max(FEWEST_CHANGES, store.stats().chunks)
    if store.revision() - store.oldest_revision() > keep:
        store.upkeep.trim_changes(keep)


def drop_leftovers(ingestion: Ingestion, opened: OpenCollection) -> None:
    """Drop what jobs have staged that are gone or done."""
    for job_id in opened.store.upkeep.staging_jobs():
        job = ingestion.jobs.get(job_id)
        if job is None or job.state is JobState.SUCCEEDED:
            opened.store.drop_staged(job_id)


def _retried(opened: OpenCollection, jobs: Sequence[Job]) -> set[str]:
    """Return the ids of those failed jobs that are the last word on a document that is there."""
    documents = _documents(opened, {job.document_id for job in jobs if job.document_id})
    return {job.id for job in jobs if job.document_id in documents and _is_newer(job, documents[job.document_id])}


def _is_newer(job: Job, document: Document) -> bool:
    return document.version == 0 or document.updated_at <= job.created_at


def _documents(opened: OpenCollection, document_ids: Iterable[str]) -> dict[str, Document]:
    """Return those of the documents that are there, by id."""
    wanted = tuple(document_ids)
    if not wanted:
        return {}
    named = Condition("$document_id", Operator.IN, wanted)
    page = opened.store.list_documents(named, limit=len(wanted), cursor=None)
    return {document.id: document for document in page.data}


def _await_young_originals(ingestion: Ingestion, opened: OpenCollection, job: Job) -> None:
    """Have the job done again when those originals are old enough that came before it and that nothing needs."""
    originals = ingestion.originals_of(opened)
    unneeded = set(originals.names()) - ingestion.needed_originals(opened.id, opened)
    seconds = originals.seconds_until_removable(unneeded, arrived_before=job.created_at.timestamp())
    if seconds is not None:
        raise Postponed(seconds)
