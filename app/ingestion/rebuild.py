"""Make the indexes of a collection anew from its store, with no model call."""

from typing import Any

from app.catalog.job import Job
from app.indexes.opening import OpenCollection
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport


def run_rebuild(_ingestion: Ingestion, opened: OpenCollection, _job: Job, report: JobReport) -> dict[str, Any]:
    """Do a `rebuild` job; searches use the old indexes until the new ones stand."""
    report.stage("index")
    opened.rebuild(lambda done, total: report.advance(done, total, "chunks"))
    return {"chunks": opened.store.stats().chunks}
