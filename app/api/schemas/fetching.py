"""Body of the route that makes a document of a URL."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.chunking import ChunkingSettings
from app.api.schemas.documents import Title
from app.api.schemas.strict import JsonObject, Request
from app.ingestion.guarded_http import LONGEST_URL

SHORTEST_REFRESH = 60
LONGEST_REFRESH = 366 * 86_400

Url = Annotated[str, Field(min_length=1, max_length=LONGEST_URL, description="`http` or `https`, without credentials")]
RefreshSeconds = Annotated[
    int | None,
    Field(ge=SHORTEST_REFRESH, le=LONGEST_REFRESH, description="Fetched again after so long; absent: only when asked"),
]

FETCH_EXAMPLE: dict[str, Any] = {
    "url": "https://intranet.example/leave-policy.html",
    "id": "leave-2026",
    "metadata": {"team": "hr"},
    "refresh_seconds": 86_400,
}


class FetchBody(Request):
    """A URL to make a document of."""

    model_config = ConfigDict(json_schema_extra={"examples": [FETCH_EXAMPLE]})

    url: Url
    id: Annotated[
        str | None, Field(min_length=1, max_length=256, description="The document's id; made of the URL by default")
    ] = None
    title: Title | None = None
    metadata: JsonObject = Field(default_factory=dict, description="Kept with the document, beside its `url`")
    chunking: Annotated[ChunkingSettings | None, Field(description="Of this document; the collection's by default")] = (
        None
    )
    refresh_seconds: RefreshSeconds = None
