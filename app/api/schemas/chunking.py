"""How texts are cut: a part of several bodies, and the bodies of the preview."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.api.schemas import examples
from app.api.schemas.search import NoticeReply
from app.api.schemas.strict import AnyText, JsonObject, Reply, Request

LARGEST_CHUNK = 100_000
MOST_CHUNKS = 200_000
LARGEST_PREVIEW = 100

Offset = Annotated[int, Field(ge=0, le=2**53)]


class CustomChunk(Request):
    """A chunk that the caller cut: a place in the document's text, or words of it."""

    start: Annotated[Offset | None, Field(description="In code points of the document's text")] = None
    end: Offset | None = None
    text: Annotated[AnyText | None, Field(description="Words of the text, found after the chunk before")] = None
    metadata: Annotated[JsonObject | None, Field(description="Said before the chunk's text when it is indexed")] = None


class ChunkingSettings(Request):
    """How texts are cut. Each strategy takes the fields that it reads and refuses the others."""

    strategy: Literal[
        "auto",
        "recursive",
        "markdown",
        "html",
        "fixed",
        "tokens",
        "records",
        "semantic",
        "parent_child",
        "code",
        "none",
        "custom",
    ] = "auto"
    size: Annotated[int | None, Field(ge=1, le=LARGEST_CHUNK, description="Longest chunk, in units")] = None
    overlap: Annotated[
        int | None, Field(ge=0, description="Units that a chunk repeats of the one before; below `size`")
    ] = None
    unit: Literal["characters", "tokens"] | None = None
    records: Annotated[int | None, Field(ge=1, le=10_000, description="Of `records`: so many in each chunk")] = None
    mode: Annotated[
        Literal["paragraph", "heading", "fixed", "document"] | None,
        Field(description="Of `parent_child`: what a parent is"),
    ] = None
    parent_size: Annotated[
        int | None, Field(ge=1, le=LARGEST_CHUNK, description="Of `parent_child`: longest parent, in characters")
    ] = None
    percentile: Annotated[
        float | None,
        Field(gt=0, lt=100, description="Of `semantic`: cut where neighbours differ more than this share of them do"),
    ] = None
    threshold: Annotated[
        float | None, Field(ge=-1, le=1, description="Of `semantic`: cut where neighbours' cosine is below")
    ] = None
    language: Annotated[str | None, Field(description="Of `code`; found by the file's name if not given")] = None
    chunks: Annotated[
        list[CustomChunk] | None, Field(max_length=MOST_CHUNKS, description="Of `custom`: the document's chunks")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return what the caller gave."""
        return self.model_dump(exclude_none=True)


class PreviewRequest(Request):
    """What to cut: a text, or a document that is stored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "# Leave\n\nEach parent may take 320 working days.", "format": "markdown"}]
        }
    )

    text: AnyText | None = None
    format: Annotated[
        Literal["text", "markdown", "html", "json", "jsonl", "csv"] | None, Field(description="Of `text`")
    ] = None
    title: Annotated[str | None, Field(max_length=2000, description="Of `text`; part of each chunk's context")] = None
    collection: Annotated[str | None, Field(max_length=63, description="Whose model and settings apply")] = None
    document_id: Annotated[str | None, Field(max_length=256)] = None
    chunking: Annotated[
        ChunkingSettings | None, Field(description="The document's, then the collection's, if not given")
    ] = None
    limit: Annotated[int, Field(ge=0, le=LARGEST_PREVIEW, description="Chunks to show")] = 20

    @model_validator(mode="after")
    def check_content(self) -> Self:
        """Take a text, or a document of a collection."""
        if (self.text is None) == (self.document_id is None):
            raise PydanticCustomError("missing_content", "give either `text` or `document_id`", {"member": "text"})
        if self.document_id is not None and self.collection is None:
            raise PydanticCustomError("missing_content", "is required with `document_id`", {"member": "collection"})
        for member in ("format", "title"):
            if self.document_id is not None and getattr(self, member) is not None:
                detail = f"`{member}` goes with `text` only"
                raise PydanticCustomError("not_applicable", "{detail}", {"member": member, "detail": detail})
        return self


class PreviewChunk(Reply):
    """A chunk: `text` is `[start, end)` of the canonical text; `context` is indexed before it."""

    ordinal: int
    kind: Literal["child", "parent"]
    parent: int | None
    start: int
    end: int
    text: str = Field(description="Cut off after 2,000 characters")
    context: str
    characters: int
    token_count: int
    page_start: int | None
    page_end: int | None
    heading_path: list[str]


class SizeSummary(Reply):
    """The sizes of some chunks."""

    min: int
    median: int
    max: int


class KindSummary(Reply):
    """How many chunks there are of one kind, and how long."""

    total: int
    characters: SizeSummary
    tokens: SizeSummary


class PreviewReply(Reply):
    """What a chunker makes of a text: counts of all chunks, and the first of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.PREVIEW]})

    chunking: dict[str, Any]
    characters: int = Field(description="Of the canonical text")
    children: KindSummary
    parents: KindSummary | None
    sentences_embedded: int = Field(description="By `semantic`, to compare them")
    data: list[PreviewChunk]
    has_more: bool
    warnings: list[NoticeReply]
    timings_ms: dict[str, float]
    request_id: str
