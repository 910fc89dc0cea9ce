"""Bodies of the keys routes."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.api.schemas import examples
from app.api.schemas.strict import FilterObject, Reply, Request, Timestamp

RoleName = Literal["search", "ask", "ingest", "owner"]


class ApiKeyRequest(Request):
    """A key to make."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "intranet search",
                    "collections": ["handbook"],
                    "role": "search",
                    "filter": {"field": "team", "op": "eq", "value": "hr"},
                    "requests_per_minute": 600,
                }
            ]
        }
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    collections: Annotated[list[str], Field(min_length=1, max_length=1000)]
    role: RoleName = "ask"
    filter: Annotated[
        FilterObject | None, Field(description="Put before every search and read of this key; it cannot be widened")
    ] = None
    expires_at: Timestamp | None = None
    requests_per_minute: Annotated[int | None, Field(ge=1, le=1_000_000)] = None


class RotateRequest(Request):
    """How long the old secret stays valid beside the new one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"overlap_seconds": 3600}]})

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86_400)] = 0


class ApiKeyReply(Reply):
    """A key without its secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.API_KEY]})

    id: str
    name: str
    prefix: str = Field(description="How the secret begins")
    role: str
    collections: list[str]
    filter: dict[str, Any] | None
    requests_per_minute: int | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewApiKeyReply(ApiKeyReply):
    """A key with its secret, which is shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [examples.NEW_API_KEY]})

    secret: str


class ApiKeyList(Reply):
    """One page of keys."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [examples.API_KEY], "has_more": False, "next_cursor": None}]}
    )

    data: list[ApiKeyReply]
    has_more: bool
    next_cursor: str | None
