"""Bodies of the routes that look after a collection."""

from typing import Any

from pydantic import ConfigDict

from app.api.schemas.strict import Reply

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
