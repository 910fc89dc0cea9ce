"""Bodies of the search route."""

from typing import Any

from pydantic import ConfigDict, Field

from app.api.schemas import examples
from app.api.schemas.search_options import SearchOptions
from app.api.schemas.strict import Reply


class SearchRequest(SearchOptions):
    """A search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "how many days of parental leave",
                    "mode": "hybrid",
                    "top_k": 5,
                    "filter": {"field": "team", "op": "eq", "value": "hr"},
                }
            ]
        }
    )

    query: str


class NoticeReply(Reply):
    """Something to know although the work was done; further members depend on the code."""

    model_config = ConfigDict(extra="allow")

    code: str
    detail: str


class LegScoreReply(Reply):
    """What one leg said of a passage."""

    score: float
    rank: int


class ScoresReply(Reply):
    """The scores that put a passage where it is; a leg that did not find it is absent."""

    dense: LegScoreReply | None = None
    keyword: LegScoreReply | None = None
    fused: float | None = None


class PassageReply(Reply):
    """A piece of a document: `text` is `[start, end)` of the document's text, in code points."""

    rank: int
    chunk_id: str
    document_id: str
    collection: str
    title: str
    text: str
    start: int
    end: int
    page_start: int | None
    page_end: int | None
    heading_path: list[str]
    score: float = Field(description="The score that ordered the list")
    score_type: str = Field(description="Which score that is: `rrf`, `weighted`, `dense` or `bm25`")
    found_by: list[str]
    scores: ScoresReply
    metadata: dict[str, Any]


class QueryReply(Reply):
    """The query as it was asked and as it was searched."""

    original: str
    used: list[str]
    mode: str


class SearchReply(Reply):
    """Passages, best first."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.SEARCH]})

    data: list[PassageReply]
    query: QueryReply
    degraded: list[str] = Field(description="Legs that did not answer")
    warnings: list[NoticeReply]
    timings_ms: dict[str, float]
    request_id: str
