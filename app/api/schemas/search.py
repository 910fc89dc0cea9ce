"""Bodies of the search route."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from app.api.schemas import examples
from app.api.schemas.strict import FilterObject, Reply, Request

_MEMBERS_OF = {"rrf": {"k", "weights"}, "weighted": {"alpha"}}


class FixedWeights(Request):
    """How much each leg's vote counts."""

    dense: Annotated[float, Field(ge=0)] = 1.0
    keyword: Annotated[float, Field(ge=0)] = 1.0


def _kind(value: Any) -> str:
    return "fixed" if isinstance(value, (dict, FixedWeights)) else "number" if _is_number(value) else "auto"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_Auto = Annotated[Literal["auto"], Tag("auto")]


class FusionOptions(Request):
    """How the two legs become one list."""

    method: Literal["rrf", "weighted"] = "rrf"
    k: Annotated[float, Field(ge=0, description="Of `rrf`: how little the first ranks stand out")] = 10.0
    weights: Annotated[
        _Auto | Annotated[FixedWeights, Tag("fixed")],
        Discriminator(lambda value: "fixed" if _kind(value) == "fixed" else "auto"),
        Field(description="Of `rrf`: `auto` weighs keywords by how much of the query they cover"),
    ] = "auto"
    alpha: Annotated[
        _Auto | Annotated[float, Field(ge=0, le=1), Tag("number")],
        Discriminator(lambda value: "number" if _kind(value) == "number" else "auto"),
        Field(description="Of `weighted`: the dense leg's share, from 0 to 1"),
    ] = "auto"

    @model_validator(mode="after")
    def refuse_other_method(self) -> Self:
        """Refuse an option that the chosen method would not look at."""
        for name in sorted(self.model_fields_set - {"method"} - _MEMBERS_OF[self.method]):
            raise PydanticCustomError(
                "unknown_field",
                "`{member}` is not an option of the method `{method}`",
                {"member": name, "method": self.method},
            )
        return self


class SearchOptions(Request):
    """Everything of a search but its query."""

    mode: Literal["dense", "keyword", "hybrid"] = "hybrid"
    top_k: Annotated[int, Field(ge=1, description="Passages wanted")] = 5
    candidates: Annotated[int | None, Field(ge=1, description="Hits of each leg; at least `top_k`, 100 by default")] = (
        None
    )
    filter: FilterObject | None = None
    document_ids: Annotated[
        list[Annotated[str, Field(max_length=256)]] | None, Field(max_length=5000, description="Search only these")
    ] = None
    fusion: FusionOptions | None = None


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
