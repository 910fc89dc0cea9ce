"""How a collection understands words."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.strict import Request

_EXAMPLE: dict[str, Any] = {
    "synonyms": [["car", "automobile", "motor vehicle"], ["PTO", "paid time off"]],
    "stop_words": ["footnote"],
    "language": "auto",
}

Entry = Annotated[str, Field(min_length=1, max_length=200)]


class AnalysisSettings(Request):
    """A collection's own words. Synonyms and stop words count from the next search on."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    synonyms: Annotated[
        list[Annotated[list[Entry], Field(min_length=2, max_length=100)]],
        Field(description="Groups of words and phrases that mean the same: who asks for one finds all"),
    ] = Field(default_factory=list)
    stop_words: Annotated[
        list[Entry], Field(description="Words that a query does without while it says anything else")
    ] = Field(default_factory=list)
    language: Annotated[
        str,
        Field(
            min_length=2,
            max_length=8,
            description="By which documents sent from then on are stemmed, an ISO 639-1 code; `auto` tells each by its "
            "words. A metadata field `language` of the document counts before it",
        ),
    ] = "auto"
