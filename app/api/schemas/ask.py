"""Bodies of the ask route."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.api.schemas import examples
from app.api.schemas.search import NoticeReply
from app.api.schemas.search_options import SearchOptions
from app.api.schemas.strict import Reply, Request


class AskRequest(Request):
    """A question and how to answer it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": "How many days of parental leave?", "search": {"top_k": 8}, "abstain": True}]
        }
    )

    question: str
    search: SearchOptions = SearchOptions()
    template: Literal["qa"] = "qa"
    instructions: Annotated[
        str | None, Field(max_length=10_000, description="Said to the language model; replaces the collection's")
    ] = None
    answerer: Annotated[
        Literal["auto", "generative", "extractive"],
        Field(description="`auto` generates where a language model is configured, else extracts sentences"),
    ] = "auto"
    abstain: Annotated[bool, Field(description="Say that there is no evidence rather than guess")] = True
    max_context_tokens: Annotated[int, Field(ge=64, le=1_000_000)] = 3000
    max_tokens: Annotated[int, Field(ge=1, le=100_000, description="Longest answer")] = 512
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.1


class SpanReply(Reply):
    """`[start, end)` in code points."""

    start: int
    end: int


class CitationReply(Reply):
    """What of the answer is supported by which exact piece of a source."""

    marker: int
    answer_span: SpanReply
    quote: str
    document_id: str
    chunk_id: Annotated[
        str, Field(description="The chunk that was found or, of what stands around it, the quote's own")
    ]
    start: int
    end: int
    page: int | None
    heading_path: list[str]
    verified: bool


class SourceReply(Reply):
    """A passage that the answer could use, in the context that `search.expand` gives it; `[marker]` means it."""

    marker: int
    chunk_id: str
    document_id: str
    title: str
    text: str
    start: int
    end: int
    page_start: int | None
    page_end: int | None
    heading_path: list[str]
    score: float


class AskedReply(Reply):
    """The question as it was searched."""

    standalone: str


class UsageReply(Reply):
    """Tokens of the language model; 0 for an extractive answer."""

    prompt_tokens: int
    completion_tokens: int


class AskReply(Reply):
    """An answer with its evidence."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.ASK]})

    answer: str
    answered: bool
    reason: str | None
    citations: list[CitationReply]
    invalid_citations: int = Field(description="Markers that the model invented; they are not in the answer")
    sources: list[SourceReply]
    query: AskedReply
    model: str
    usage: UsageReply
    warnings: list[NoticeReply]
    timings_ms: dict[str, float]
    request_id: str
