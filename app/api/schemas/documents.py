"""Bodies of the documents routes."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, SkipValidation, model_validator
from pydantic_core import PydanticCustomError

from app.api.schemas import examples
from app.api.schemas.chunking import MOST_CHUNKS, ChunkingSettings, CustomChunk
from app.api.schemas.problem import Problem
from app.api.schemas.search import NoticeReply
from app.api.schemas.strict import AnyText, FilterObject, JsonObject, Reply, Request, Timestamp
from app.domain import DocumentState

MEDIA_TYPES = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
}
"""What `format` declares the text to be."""

Title = Annotated[str, Field(max_length=2000)]

_BODY_EXAMPLE: dict[str, Any] = {
    "text": "# Leave\n\nEach parent may take 320 working days.",
    "format": "markdown",
    "title": "Leave policy",
    "metadata": {"team": "hr", "year": 2026},
    "expires_at": None,
}


EXPIRY = "The document is deleted within minutes after this time"


class DocumentBody(Request):
    """A document as text or as records, one of the two."""

    model_config = ConfigDict(json_schema_extra={"examples": [_BODY_EXAMPLE]})

    text: AnyText | None = None
    records: Annotated[
        list[JsonObject] | None, Field(min_length=1, description="Objects; each is searched on its own")
    ] = None
    format: Annotated[
        Literal["text", "markdown", "html", "json", "jsonl", "csv"] | None, Field(description="Of `text`")
    ] = None
    title: Title | None = None
    metadata: JsonObject = Field(default_factory=dict)
    expires_at: Timestamp | None = Field(None, description=EXPIRY)
    chunking: Annotated[ChunkingSettings | None, Field(description="Of this document; the collection's by default")] = (
        None
    )
    chunks: Annotated[
        list[CustomChunk] | None,
        Field(min_length=1, max_length=MOST_CHUNKS, description="Its chunks; they are the text if none is given"),
    ] = None

    @model_validator(mode="after")
    def check_content(self) -> Self:
        """Take one kind of content, a format only for text, and chunks once."""
        has_texts = self.chunks is not None and all(chunk.text is not None for chunk in self.chunks)
        if (self.text is None) == (self.records is None) and not (self.text is None and has_texts):
            raise PydanticCustomError("missing_content", "give either `text` or `records`", {"member": "text"})
        if self.chunks is not None and self.chunking is not None and self.chunking.given() != {"strategy": "custom"}:
            raise PydanticCustomError("not_applicable", "goes with the strategy `custom` only", {"member": "chunks"})
        if self.records is not None and self.format is not None:
            raise PydanticCustomError("not_applicable", "`format` goes with `text` only", {"member": "format"})
        return self


class BatchDocument(DocumentBody):
    """One document of a batch."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "leave-2026", **_BODY_EXAMPLE}]})

    id: Annotated[str, Field(min_length=1, max_length=256)]


class Batch(Request):
    """Documents to put; each succeeds or fails on its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"documents": [{"id": "leave-2026", **_BODY_EXAMPLE}]}]})

    documents: Annotated[list[SkipValidation[BatchDocument]], Field(min_length=1)]


class UploadInfo(Request):
    """The `info` part of an upload."""

    metadata: JsonObject = Field(default_factory=dict, description="For all files")
    chunking: Annotated[ChunkingSettings | None, Field(description="Of all files; the collection's by default")] = None
    ids: dict[str, Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, description="Document ids by file name; a safe form of the name by default"
    )


UPLOAD_SCHEMA: dict[str, Any] = {
    "schema": {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
            "info": {
                name: value
                for name, value in UploadInfo.model_json_schema(ref_template="#/components/schemas/{model}").items()
                if name != "$defs"
            },
        },
        "required": ["files"],
        "additionalProperties": False,
    },
    "encoding": {"info": {"contentType": "application/json"}},
}
"""The form of an upload, as the specification tells it."""


class DocumentPatch(Request):
    """Fields to change. Only another title embeds anything: the chunks that carry it as their context."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"year": 2027, "draft": None}}]})

    title: Title | None = None
    metadata: JsonObject = Field(default_factory=dict, description="A JSON merge patch: `null` removes a member")
    expires_at: Timestamp | None = Field(None, description=EXPIRY)


class DeleteByFilter(Request):
    """Which documents to delete."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"filter": {"field": "year", "op": "lt", "value": 2020}}]}
    )

    filter: FilterObject


class Deleted(Reply):
    """How many documents were deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"deleted": 3}]})

    deleted: int


class ChunkTotal(Reply):
    """How many chunks a document has."""

    total: int


class ChunkCounts(ChunkTotal):
    """How many chunks a document has, and which of them the model saw."""

    embedded: int
    reused: int


class DocumentSummary(Reply):
    """A document. `version` is 0 until one version was ready; an older one answers while a newer is in work."""

    id: str
    collection: str
    state: DocumentState
    version: int
    etag: str | None
    title: str
    metadata: dict[str, Any]
    media_type: str
    filename: str | None
    characters: int
    chunks: ChunkTotal
    extraction: dict[str, Any] | None
    warnings: list[NoticeReply]
    error: Problem | None
    created_at: datetime
    updated_at: datetime
    indexed_at: datetime | None = Field(description="When its present version was indexed")
    expires_at: datetime | None
    content_hash: str | None = Field(description="SHA-256 of the original of the present version")
    chunking: dict[str, Any] | None = Field(
        None, description="How it is cut where it says so itself, without the chunks of `custom`"
    )


class DocumentReply(DocumentSummary):
    """A document as an answer of its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.DOCUMENT]})

    timings_ms: dict[str, float]
    request_id: str


class SubmittedReply(DocumentReply):
    """A document and what a write made of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.SUBMITTED]})

    outcome: Literal["created", "updated", "metadata_updated", "unchanged"]
    chunks: ChunkCounts
    duplicate_of: list[str] = Field(description="Other documents with the same bytes")


class DocumentList(Reply):
    """One page of documents."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.DOCUMENTS]})

    data: list[DocumentSummary]
    has_more: bool
    next_cursor: str | None


class ChunkReply(Reply):
    """A chunk: `text` is `[start, end)` of the document's text, in code points."""

    chunk_id: str
    ordinal: int
    start: int
    end: int
    text: str
    token_count: int
    page_start: int | None
    page_end: int | None
    heading_path: list[str]
    kind: Literal["child", "parent"] = Field(
        default="child", description="Searches find children; a parent is what some are read in"
    )
    context: str = Field(default="", description="What stands before the text where it is embedded and indexed")
    parent_id: str | None = Field(default=None, description="The chunk that a child is read in")


class ChunkList(Reply):
    """One page of a document's chunks, by ordinal."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.CHUNKS]})

    data: list[ChunkReply]
    has_more: bool
    next_cursor: str | None


class RestoreVersion(Request):
    """Which version to bring back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": 1}]})

    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="One that the history says is `kept`")]


class VersionReply(Reply):
    """One line of a document's history; what is `kept` can be restored."""

    version: int
    etag: str
    content_hash: str
    title: str
    characters: int
    chunk_count: int
    created_at: datetime
    current: bool
    kept: bool


class VersionList(Reply):
    """One page of a document's history, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.VERSIONS]})

    data: list[VersionReply]
    has_more: bool
    next_cursor: str | None


class ItemReply(Reply):
    """What became of one document of a batch or upload; `status` is what it would have answered alone."""

    index: int
    id: str | None
    status: int
    outcome: Literal["pending", "created", "updated", "metadata_updated", "unchanged", "failed"]
    job_id: str | None
    duplicate_of: list[str]
    warnings: list[NoticeReply]
    error: Problem | None


class BatchReply(Reply):
    """What became of each document, in the order sent."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.BATCH]})

    results: list[ItemReply]
    request_id: str
