"""What a job's kind names besides `ingest`: work on a whole collection. One line a kind."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from app.catalog.job import Job
from app.indexes.opening import OpenCollection
from app.ingestion.compact import run_compact
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.ingestion.rebuild import run_rebuild
from app.ingestion.verify import run_verify

Task: TypeAlias = Callable[[Ingestion, OpenCollection, Job, JobReport], dict[str, Any]]
"""Do a job and return its result; raise the `FootnoteError` that says why it failed."""

TASKS: Mapping[str, Task] = {
    "compact": run_compact,
    "rebuild": run_rebuild,
    "verify": run_verify,
}
