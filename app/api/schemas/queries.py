"""Bodies of the query log's routes, and its settings."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.strict import Reply, Request
from app.catalog.query_log import Operation

_QUERY: dict[str, Any] = {
    "id": "qry_6f1e2d3c4b5a69788796a5b4",
    "created_at": "2026-01-31T12:00:00Z",
    "operation": "search",
    "query": "how many days of parental leave",
    "query_characters": 31,
    "key_id": "key_5c4d3e2f1a0b99887766aabb",
    "mode": "hybrid",
    "options": {"top_k": 5, "filter": {"field": "team", "op": "eq", "value": "hr"}},
    "hit_count": 1,
    "hits": [{"rank": 1, "chunk_id": "chk_0f9e8d7c6b5a49382716", "document_id": "leave-2026", "score": 0.0323}],
    "degraded": [],
    "warnings": [],
    "total_ms": 11.4,
    "request_id": "req_2f6c1d0b9a8e4f37c5d2",
}


class QueryLogSettings(Request):
    """Which searches and questions the collection remembers; it keeps the last FOOTNOTE_QUERY_LOG_ENTRIES of them."""

    enabled: Annotated[bool, Field(description="Whether any are kept from now on")] = True
    search_keys: Annotated[bool, Field(description="Also those of keys with the role `search`")] = False


class LoggedHitReply(Reply):
    """A hit, without its text."""

    rank: int
    chunk_id: str
    document_id: str
    score: float


class LoggedQueryReply(Reply):
    """A search or a question, and what became of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_QUERY]})

    id: str
    created_at: datetime
    operation: Operation
    query: str = Field(description="Its first 1,000 characters")
    query_characters: int = Field(description="How many the whole query had")
    key_id: str | None = Field(description="Null for the admin key")
    mode: str
    options: dict[str, Any] = Field(
        description="What was said beside the query, but for messages; `…` stands for what is long"
    )
    hit_count: int = Field(description="Hits that were given, or that the answer could use")
    hits: list[LoggedHitReply] = Field(description="The first 10 of them")
    degraded: list[str]
    warnings: list[str] = Field(description="Their codes")
    total_ms: float
    request_id: str


class QueryLogPage(Reply):
    """One page of a collection's query log, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [_QUERY], "has_more": False, "next_cursor": None}]}
    )

    data: list[LoggedQueryReply]
    has_more: bool
    next_cursor: str | None
