"""What a job's kind names: the writing of one document, or work on a whole collection. One line a kind."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from app.catalog.job import Job
from app.indexes.opening import OpenCollection
from app.ingestion.compact import run_compact
from app.ingestion.deduplicate import run_deduplicate
from app.ingestion.fetch_job import run_fetch
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.ingestion.rebuild import run_rebuild
from app.ingestion.reembed import run_reembed
from app.ingestion.verify import run_verify
from app.ingestion.work import run_ingest

Task: TypeAlias = Callable[[Ingestion, OpenCollection, Job, JobReport], dict[str, Any]]
"""Do a job and return its result; raise the `FootnoteError` that says why it failed."""

WRITES: Mapping[str, Task] = {
    "ingest": run_ingest,
    "fetch": run_fetch,
}
"""Kinds that end with the index brought up, for several documents at once."""

TASKS: Mapping[str, Task] = {
    "compact": run_compact,
    "deduplicate": run_deduplicate,
    "rebuild": run_rebuild,
    "reembed": run_reembed,
    "verify": run_verify,
}
