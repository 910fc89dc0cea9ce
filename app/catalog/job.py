"""What a job is, as it leaves the catalog."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import RowMapping


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_finished(self) -> bool:
        """Return whether nothing more happens unless it is retried."""
        return self not in UNFINISHED


UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the present stage is done; `total` is `None` while nobody knows."""

    done: int
    total: int | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of long work. `document_id` is `None` for work on the whole collection.

    `error` is a problem object and the `stage` it came from; `stages` holds `{name, ms}` of each stage that has ended.
    `payload` holds a document's password only in the job that `claim` returns. `exhausted` says that the process died
    in every attempt it was allowed: the one who claimed it must fail it without trying again. `changes` grows with each
    change of what is told here.
    """

    id: str
    kind: str
    collection: str
    collection_id: str
    document_id: str | None
    state: JobState
    stage: str | None
    progress: Progress
    attempt: int
    stages: tuple[dict[str, Any], ...]
    error: dict[str, Any] | None
    result: dict[str, Any] | None
    payload: dict[str, Any]
    owner: str | None
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    exhausted: bool = False
    changes: int = 0

    @property
    def is_finished(self) -> bool:
        """Return whether nothing more happens unless it is retried."""
        return self.state.is_finished

    @classmethod
    def of(cls, row: RowMapping) -> "Job":
        """Return the job of a row of the table, without its password."""
        return cls(
            id=row["id"],
            kind=row["kind"],
            collection=row["collection"],
            collection_id=row["collection_id"],
            document_id=row["document_id"] or None,
            state=JobState(row["state"]),
            stage=row["stage"],
            progress=Progress(row["done"], row["total"], row["unit"]),
            attempt=row["attempt"],
            stages=tuple(row["stages"]),
            error=row["error"],
            result=row["result"],
            payload=row["payload"],
            owner=row["owner"],
            cancel_requested=row["cancel_requested"],
            created_at=row["created_at"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            changes=row["changes"],
        )
