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


class SeveralSearchRequest(SearchRequest):
    """A search of several collections."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "how many days of parental leave", "collections": ["handbook"], "top_k": 5}]
        }
    )

    collections: list[str] | None = Field(
        None, min_length=1, description="Their names; all that the key opens if it is left out"
    )


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
    rerank: float | None = None


class ContextReply(Reply):
    """What stands around a passage; `text` is null where the passage of the rank `same_as` gives it."""

    start: int
    end: int
    text: str | None
    same_as: int | None = None
    truncated: bool = Field(False, description="More was asked for than `max_characters` let through")


class GroupMemberReply(Reply):
    """A further hit of the same document."""

    chunk_id: str
    start: int
    end: int
    score: float


class SpanReply(Reply):
    """A place in the document's text, `[start, end)` in code points."""

    start: int
    end: int


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
    score_type: str = Field(description="One of `relative`, `weighted`, `rrf`, `dense`, `bm25`, `rerank`")
    found_by: list[str]
    scores: ScoresReply
    context: ContextReply | None = Field(None, description="With `expand`")
    highlights: list[SpanReply] | None = Field(None, description="With `highlight`: places of the query's words")
    merged: list[str] = Field([], description="Chunks that `diversity.merge` took in")
    group: list[GroupMemberReply] | None = Field(None, description="With `group_by`: further hits of the document")
    metadata: dict[str, Any]


class FacetValueReply(Reply):
    """A value of a metadata field, and how many of the documents found have it."""

    value: Any
    count: int


class TraceHitReply(Reply):
    """A chunk of a stage's list; null ids are those of one that is deleted by now."""

    chunk_id: str | None
    document_id: str | None
    score: float


class TraceStageReply(Reply):
    """What one stage of the search decided, and the first hits of the list that it gave."""

    stage: str
    facts: dict[str, Any]
    hits: list[TraceHitReply] | None
    count: int | None = Field(description="Length of the whole list")
    collection: str | None = Field(None, description="Of a search of several: the one whose stage this is")


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
    has_more: bool
    next_cursor: str | None = Field(description="Send it as `cursor` with the same body for the next page")
    facets: dict[str, list[FacetValueReply]] = Field(
        {}, description="With `facets`: values by field, over the documents of every hit and not of this page alone"
    )
    degraded: list[str] = Field(description="Legs and steps that did not answer")
    warnings: list[NoticeReply]
    timings_ms: dict[str, float]
    trace: list[TraceStageReply] | None = Field(None, description="With `explain`")
    request_id: str
