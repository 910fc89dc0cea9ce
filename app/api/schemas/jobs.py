"""Bodies of the jobs routes."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from app.api.schemas import examples
from app.api.schemas.problem import Problem
from app.api.schemas.strict import Reply
from app.catalog.job import JobState


class ProgressReply(Reply):
    """How much of the present stage is done."""

    done: int
    total: int | None
    unit: str | None


class StageReply(Reply):
    """A stage that has ended."""

    name: str
    ms: float


class JobProblem(Problem):
    """Why the job failed."""

    stage: str | None = Field(default=None, description="The stage that failed")


class JobReply(Reply):
    """A piece of long work."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.JOB]})

    id: str
    kind: str
    collection: str
    document_id: str | None
    state: JobState
    stage: str | None
    progress: ProgressReply
    attempt: int
    stages: list[StageReply]
    error: JobProblem | None
    result: dict[str, Any] | None = Field(description="What a job that succeeded made")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobList(Reply):
    """One page of jobs, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.JOBS]})

    data: list[JobReply]
    has_more: bool
    next_cursor: str | None
