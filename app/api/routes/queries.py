"""The query log: what a collection was asked lately, which hits it gave, and how long it took."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.declared import keyed
from app.api.dependencies import IngestAccess, OwnerAccess, check_sees_all
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit
from app.api.schemas.queries import LoggedQueryReply, QueryLogPage
from app.api.schemas.strict import Timestamp
from app.api.strict_route import StrictRoute
from app.catalog.query_log import Operation

router = APIRouter(prefix="/v1/collections/{collection}/queries", route_class=StrictRoute, tags=["queries"])


@router.get("", operation_id="queries.list", summary="List what was asked, newest first", responses=keyed(403, 404))
def list_queries(
    access: IngestAccess,
    since: Annotated[Timestamp | None, Query(description="Only what was asked from then on")] = None,
    operation: Annotated[Operation | None, Query(description="Only this")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> QueryLogPage:
    """Answer the last searches and questions with the ids of their hits, and no text of a document.

    Queries of keys with the role `search` are in it only where the collection's `query_log` says so. What another
    server process was asked is in it a second later.
    """
    check_sees_all(access.principal)
    access.services.query_recorder.flush()
    page, next_cursor = access.services.query_log.list(
        access.collection.id, since=since, operation=operation, limit=limit, cursor=cursor
    )
    data = [LoggedQueryReply.model_validate(entry) for entry in page]
    return QueryLogPage(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.delete(
    "",
    operation_id="queries.clear",
    summary="Forget what was asked",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404, 507),
)
def clear_queries(access: OwnerAccess) -> Response:
    """Clear the log; `compact` does it too, and leaves nothing of it on the disk."""
    access.services.query_log.clear(access.collection.id)
    return Response(status_code=204)
