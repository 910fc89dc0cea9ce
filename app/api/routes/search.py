"""Search one collection."""

from fastapi import APIRouter

from app.api.declared import keyed
from app.api.dependencies import SearchAccess
from app.api.schemas.search import SearchReply, SearchRequest
from app.api.searching import run_search, search_plan, search_reply
from app.api.strict_route import StrictRoute

router = APIRouter(prefix="/v1/collections/{collection}", route_class=StrictRoute, tags=["search"])


@router.post(
    "/search",
    operation_id="search.run",
    summary="Find the passages that answer a query",
    responses=keyed(404, 409, 413, 415, 502),
)
def search(access: SearchAccess, body: SearchRequest) -> SearchReply:
    """Answer passages, best first, with each leg's score and rank."""
    plan = search_plan(access, body, body.query)
    return search_reply(run_search(access, plan), body.query)
