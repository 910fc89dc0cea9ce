"""Bodies of the collections routes."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.api.schemas import examples
from app.api.schemas.analysis import AnalysisSettings
from app.api.schemas.chunking import ChunkingSettings
from app.api.schemas.queries import QueryLogSettings
from app.api.schemas.search import NoticeReply
from app.api.schemas.search_options import SearchOptions
from app.api.schemas.strict import Reply, Request
from app.catalog.collections import DEFAULT_KEPT_VERSIONS

_BODY_EXAMPLE: dict[str, Any] = {
    "title": "Staff handbook",
    "description": "Rules and benefits",
    "chunking": {"strategy": "auto", "size": 1200, "overlap": 0, "unit": "characters"},
    "defaults": {"top_k": 8},
    "instructions": "Answer in the language of the question.",
}


class EmbeddingSettings(Request):
    """Which model embeds the collection; fixed by its first document."""

    model: Annotated[str | None, Field(min_length=1, max_length=200)] = None


class NormalisationSettings(Request):
    """What of a text only its pages made, and is taken out; `auto` does it for PDFs and pictures."""

    repeated_lines: Annotated[
        Literal["auto", "remove", "keep"],
        Field(description="Running heads, footers and page numbers: what many pages have at their edges stays once"),
    ] = "auto"
    hyphens: Annotated[
        Literal["auto", "join", "keep"], Field(description="Words that a line end broke, and soft hyphens")
    ] = "auto"
    line_breaks: Annotated[
        Literal["auto", "join", "keep"],
        Field(description="Line ends inside paragraphs; `join` does it for every kind of file"),
    ] = "auto"


class QuotaSettings(Request):
    """The most that the collection may hold; only the admin key changes it. What is absent has no limit."""

    documents: Annotated[int | None, Field(ge=0, description="Documents, in any state")] = None
    chunks: Annotated[int | None, Field(ge=0)] = None
    bytes: Annotated[int | None, Field(ge=0, description="Bytes of all stored originals")] = None
    document_bytes: Annotated[int | None, Field(ge=0, description="Bytes of one document as it was sent")] = None


class CollectionSettings(Request):
    """What a collection's documents and answers share; an absent field takes its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_BODY_EXAMPLE]})

    title: Annotated[str | None, Field(max_length=500)] = None
    description: Annotated[str | None, Field(max_length=10_000)] = None
    embedding: EmbeddingSettings = EmbeddingSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    normalisation: NormalisationSettings = NormalisationSettings()
    indexing: Annotated[
        Literal["standard", "enhanced"],
        Field(description="`enhanced` keeps vectors of clean texts and of parents beside those that searches use"),
    ] = "standard"
    contextualizer: Annotated[
        Literal["heading", "llm", "none"],
        Field(description="What stands before a chunk where it is embedded: title and headings, or more by the model"),
    ] = "heading"
    analysis: AnalysisSettings = AnalysisSettings()
    defaults: SearchOptions = Field(SearchOptions(), description="A search body without `query`, for every search")
    instructions: Annotated[
        str | None, Field(max_length=10_000, description="Said to the language model with every question")
    ] = None
    metadata_fields: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(max_length=200, description="Names of metadata fields that callers may filter by, as a hint for clients"),
    ] = Field(default_factory=list)
    keep_versions: Annotated[
        int, Field(ge=0, le=1000, description="How many versions before a document's present one can be restored")
    ] = DEFAULT_KEPT_VERSIONS
    max_age_days: Annotated[
        float | None, Field(gt=0, le=36_500, description="Documents that have not changed for so long are deleted")
    ] = None
    quotas: QuotaSettings = QuotaSettings()
    query_log: QueryLogSettings = QueryLogSettings()


class CollectionPatch(CollectionSettings):
    """Fields to change; those that are absent stay. Objects are replaced whole."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Handbook 2026", "defaults": {"top_k": 10}}]})


class CollectionReply(Reply):
    """A collection."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.COLLECTION]})

    name: str
    title: str | None
    description: str | None
    embedding: dict[str, Any]
    chunking: dict[str, Any]
    normalisation: dict[str, Any]
    indexing: str
    contextualizer: str = "heading"
    analysis: dict[str, Any] = Field(default_factory=lambda: AnalysisSettings().model_dump())
    defaults: dict[str, Any]
    instructions: str | None
    metadata_fields: list[str]
    keep_versions: int = DEFAULT_KEPT_VERSIONS
    max_age_days: float | None = None
    quotas: dict[str, int] = Field(default_factory=dict, description="Those that are set")
    query_log: dict[str, bool] = Field(default_factory=lambda: QueryLogSettings().model_dump())
    warnings: list[NoticeReply] = Field(default=[], description="What a change of settings does not do, or not yet")
    created_at: datetime
    updated_at: datetime


class CollectionList(Reply):
    """One page of the collections this key opens."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [examples.COLLECTION], "has_more": False, "next_cursor": None}]}
    )

    data: list[CollectionReply]
    has_more: bool
    next_cursor: str | None


class QuotaUse(Reply):
    """A quota and what is used of it."""

    limit: int
    used: int | None = Field(description="Absent for `document_bytes`, which each document has for itself")


class CollectionStats(Reply):
    """Counts of one collection; bytes are on disk."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.STATS]})

    documents: dict[str, int] = Field(description="Documents by state")
    chunks: int
    characters: int
    revision: int
    database_bytes: int
    original_bytes: int
    embedding: dict[str, Any] | None = Field(description="The space of the stored vectors")
    quotas: dict[str, QuotaUse] = Field(description="Each quota that is set")
