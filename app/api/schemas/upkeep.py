"""Bodies of the routes that look after a collection."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.strict import Reply, Request
from app.ingestion.deduplicate import DEFAULT_GROUPS, DEFAULT_THRESHOLD

_CLEAN: dict[str, Any] = {"clean": True, "differences": []}
_LOST: dict[str, Any] = {
    "kind": "missing_original",
    "document_id": None,
    "chunk_id": None,
    "detail": "the original 9f2c… is not stored",
}


class Difference(Reply):
    """Something that store, index and originals do not agree on; the kind `more` counts those that are not listed."""

    kind: str
    document_id: str | None
    chunk_id: str | None
    detail: str


class Verification(Reply):
    """What `verify` found."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_CLEAN, {"clean": False, "differences": [_LOST]}]},
    )

    clean: bool
    differences: list[Difference]


class DeduplicateBody(Request):
    """How near chunks must be, what is listed, and whether anything is deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"threshold": 0.98, "delete": False}]})

    threshold: Annotated[float, Field(ge=0.5, le=1, description="Least cosine of a duplicate")] = DEFAULT_THRESHOLD
    delete: Annotated[bool, Field(description="Delete documents that hold nothing but duplicates")] = False
    groups: Annotated[int, Field(ge=0, le=1000, description="Most groups that are listed")] = DEFAULT_GROUPS


class ReembedBody(Request):
    """Where to move."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "multilingual-e5-small"}]})

    model: Annotated[str, Field(min_length=1, max_length=200, description="A model that is configured on the server")]
