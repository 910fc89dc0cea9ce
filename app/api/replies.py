"""What every answer shares: its JSON, its request id, rounded times, and pages of lists."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from fastapi import Query, Response

from app.api.schemas.search import NoticeReply
from app.api.schemas.strict import Reply
from app.domain import Notice
from app.errors import InvalidCursor
from app.telemetry import request_id

Limit = Annotated[int, Query(ge=1, le=200, description="Most items of one page")]
Cursor = Annotated[
    str | None, Query(max_length=1000, description="`next_cursor` of the page before; absent for the first page")
]

DEFAULT_LIMIT = 50


def reply(body: Reply, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a body as JSON."""
    return Response(body.model_dump_json(), status, dict(headers or {}), media_type="application/json")


def current_request_id() -> str:
    """Return the id of the request being served."""
    return request_id.get() or ""


def rounded(timings_ms: Mapping[str, float]) -> dict[str, float]:
    """Return milliseconds by stage to a hundredth."""
    return {name: round(value, 2) for name, value in timings_ms.items()}


def notices(warnings: Iterable[Notice | Mapping[str, object]]) -> list[NoticeReply]:
    """Return warnings as they are answered."""
    return [
        NoticeReply.model_validate(warning.as_json() if isinstance(warning, Notice) else dict(warning))
        for warning in warnings
    ]


def after(cursor: str | None) -> int | None:
    """Return the number after which a page begins, for lists whose cursor is one."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidCursor.of_another_list()
    return int(cursor)
