"""Bodies of the service routes."""

from typing import Literal

from app.api.schemas.strict import Reply


class Alive(Reply):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(Reply):
    """Whether requests can be served, and each part's word on it."""

    ready: bool
    checks: dict[str, str]
