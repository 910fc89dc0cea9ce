"""Bodies of the service routes."""

from typing import Literal

from pydantic import ConfigDict

from app.api.schemas.strict import Reply


class Alive(Reply):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


class Readiness(Reply):
    """Whether requests can be served, and each part's word on it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ready": True, "checks": {"catalog": "ok", "worker": "ok"}}]}
    )

    ready: bool
    checks: dict[str, str]
