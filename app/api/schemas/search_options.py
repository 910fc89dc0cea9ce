"""Options of a search: everything of its body but the query."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from app.api.schemas.strict import FilterObject, Request
from app.retrieval.options import FUSION_OPTIONS, fusion_method


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

    method: Annotated[
        Literal["relative", "rrf", "weighted"] | None,
        Field(
            description="`relative` adds scores as shares of their leg's best, `weighted` normalised scores, `rrf` "
            "reciprocal ranks; without it the one that has the options given, else `relative`"
        ),
    ] = None
    k: Annotated[float, Field(ge=0, description="Of `rrf`: how little the first ranks stand out")] = 10.0
    weights: Annotated[
        _Auto | Annotated[FixedWeights, Tag("fixed")],
        Discriminator(lambda value: "fixed" if _kind(value) == "fixed" else "auto"),
        Field(description="Of `rrf`: `auto` weighs keywords by how much of the query their best hit holds"),
    ] = "auto"
    alpha: Annotated[
        _Auto | Annotated[float, Field(ge=0, le=1), Tag("number")],
        Discriminator(lambda value: "number" if _kind(value) == "number" else "auto"),
        Field(description="Of `relative` and `weighted`: the dense leg's share, from 0 to 1; `auto` as in `weights`"),
    ] = "auto"
    normalisation: Annotated[
        Literal["min_max", "z_score"], Field(description="Of `weighted`: how scores of two legs become comparable")
    ] = "min_max"

    @model_validator(mode="after")
    def refuse_other_method(self) -> Self:
        """Refuse an option that the chosen method would not look at."""
        given = self.model_fields_set - {"method"}
        method = self.method or fusion_method(given)
        for name in sorted(given - FUSION_OPTIONS[method]):
            raise PydanticCustomError(
                "unknown_field",
                "`{member}` is not an option of the method `{method}`",
                {"member": name, "method": method},
            )
        return self


class RerankSettings(Request):
    """A second look at the first hits, by a model that reads query and passage together."""

    model: Annotated[
        Literal["lexical", "embedding", "http", "cross_encoder", "llm"],
        Field(description="`lexical` and `embedding` need nothing else"),
    ] = "lexical"
    candidates: Annotated[
        int | None, Field(ge=1, description="Hits that are scored again; at least `top_k`, 30 by default")
    ] = None
    timeout_seconds: Annotated[
        float | None,
        Field(gt=0, description="Later, the order stays; FOOTNOTE_RERANK_TIMEOUT_SECONDS by default"),
    ] = None
    method: Annotated[
        Literal["pointwise", "listwise"], Field(description="Of `llm`: passage by passage, or one order of all")
    ] = "pointwise"

    @model_validator(mode="after")
    def refuse_other_model(self) -> Self:
        """Refuse an option that the chosen model would not look at."""
        if "method" in self.model_fields_set and self.model != "llm":
            raise PydanticCustomError(
                "unknown_field",
                "`{member}` is not an option of the model `{model}`",
                {"member": "method", "model": self.model},
            )
        return self


class DiversitySettings(Request):
    """Less of the same."""

    lambda_: Annotated[
        float,
        Field(
            alias="lambda", ge=0, le=1, description="Maximal marginal relevance: 1 keeps the order, 0 seeks difference"
        ),
    ] = 0.7
    near_duplicates: Annotated[
        float | None,
        Field(gt=0, le=1, description="Hits as near as this (cosine) to a better one are left out; null keeps them"),
    ] = 0.98
    merge: Annotated[bool, Field(description="Make one of hits that overlap or touch in their document")] = True


class TransformSettings(Request):
    """What the language model makes of the query first; without one the query stays, with a warning."""

    rewrite: Annotated[bool, Field(description="Resolve references from `messages`, drop chatter")] = False
    multi_query: Annotated[int, Field(ge=0, description="That many more wordings")] = 0
    hyde: Annotated[bool, Field(description="Look for passages like a hypothetical answer too")] = False
    decompose: Annotated[bool, Field(description="Look for the parts of a question that has several")] = False


class ExpandSettings(Request):
    """What stands around a hit, given in its `context`; the widest that is asked for counts."""

    neighbours: Annotated[int, Field(ge=0, description="Chunks on either side")] = 0
    parent: Annotated[bool, Field(description="The parent, once for all of its hits")] = False
    section: Annotated[bool, Field(description="All under the same heading")] = False
    document: Annotated[bool, Field(description="The whole document")] = False
    max_characters: Annotated[int, Field(ge=1, description="Longest context of one hit")] = 6000


class Turn(Request):
    """One message of the conversation before."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=100_000)]


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
    preset: Annotated[
        Literal["economy", "power", "ultimate"] | None,
        Field(description="Several options at once; a field beside it wins"),
    ] = None
    queries: Annotated[
        list[str] | None, Field(description="More queries of the same search; their lists are fused", max_length=64)
    ] = None
    messages: Annotated[
        list[Turn] | None, Field(max_length=200, description="The conversation before, for `transform.rewrite`")
    ] = None
    transform: TransformSettings | None = None
    fields: Annotated[
        list[Literal["context", "content", "parent"]] | None,
        Field(min_length=1, description="Vectors to compare; `content` and `parent` are there with enhanced indexing"),
    ] = None
    narrow_to_parents: Annotated[
        int | None, Field(ge=1, le=1000, description="Search only inside that many nearest parents")
    ] = None
    query_syntax: Annotated[
        Literal["simple", "advanced"] | None,
        Field(description="`simple` reads quotes and `-word`, `advanced` also `field:value`; without it all is text"),
    ] = None
    as_you_type: Annotated[bool, Field(description="The last word is only begun")] = False
    fuzzy: Annotated[bool, Field(description="A word that no chunk holds finds those one edit away")] = True
    rerank: RerankSettings | None = None
    min_score: Annotated[float | None, Field(description="Least `score`, or least of the leg in `min_score_on`")] = None
    min_score_on: Literal["dense", "keyword"] | None = None
    diversity: DiversitySettings | None = None
    max_per_document: Annotated[int | None, Field(ge=1, description="Most hits of one document")] = None
    group_by: Annotated[
        Literal["document"] | None, Field(description="One hit per document, with what else it has in `group`")
    ] = None
    expand: ExpandSettings | None = None
    facets: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]] | None,
        Field(max_length=20, description="Metadata fields whose values are counted over the documents found"),
    ] = None
    highlight: Annotated[bool, Field(description="Tell where the words of the query stand")] = False
    explain: Annotated[bool, Field(description="Tell what each stage did, in `trace`")] = False
    cursor: Annotated[str | None, Field(max_length=100_000, description="`next_cursor` of the page before")] = None
