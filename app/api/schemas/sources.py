"""Bodies of the sources routes."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.fetching import FETCH_EXAMPLE, FetchBody
from app.api.schemas.problem import Problem
from app.api.schemas.strict import Reply, Request
from app.catalog.sources import SourceStatus

_TIME = "2026-01-31T12:00:00Z"

_SOURCE: dict[str, Any] = {
    "id": "src_9c1f0b7a2d3e4f5061728394",
    "url": FETCH_EXAMPLE["url"],
    "document_id": "leave-2026",
    "title": None,
    "metadata": {"team": "hr"},
    "chunking": None,
    "refresh_seconds": 86_400,
    "status": "ok",
    "error": None,
    "failures": 0,
    "created_at": _TIME,
    "fetched_at": _TIME,
    "changed_at": _TIME,
    "next_at": "2026-02-01T11:30:00Z",
}


class SourcesBody(Request):
    """URLs to make documents of, and to keep in step with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sources": [FETCH_EXAMPLE]}]})

    sources: Annotated[list[FetchBody], Field(min_length=1)]


class SourceReply(Reply):
    """A URL, the document that comes from it, and what became of the last fetch."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SOURCE]})

    id: str
    url: str
    document_id: str
    title: str | None
    metadata: dict[str, Any]
    chunking: dict[str, Any] | None = Field(description="Of its document; the collection's by default")
    refresh_seconds: int | None
    status: SourceStatus = Field(description="`gone` is a 404 or 410; the document stays")
    error: Problem | None
    failures: int = Field(description="In a row; each doubles the time until the next attempt")
    created_at: datetime
    fetched_at: datetime | None = Field(description="The last success")
    changed_at: datetime | None = Field(description="The last success that brought other bytes")
    next_at: datetime | None = Field(description="When it is fetched again, if ever")


class SourceList(Reply):
    """One page of sources, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [_SOURCE], "has_more": False, "next_cursor": None}]}
    )

    data: list[SourceReply]
    has_more: bool
    next_cursor: str | None


class SourceResult(Reply):
    """What became of one URL of the request."""

    index: int
    url: str
    status: int
    source: SourceReply | None
    job_id: str | None
    error: Problem | None


class SourceResults(Reply):
    """What became of each URL."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "results": [
                        {
                            "index": 0,
                            "url": FETCH_EXAMPLE["url"],
                            "status": 202,
                            "source": _SOURCE | {"status": "pending", "fetched_at": None, "changed_at": None},
                            "job_id": "job_7f3a0c1d2e4b5a6978801234",
                            "error": None,
                        }
                    ]
                }
            ]
        }
    )

    results: list[SourceResult]
