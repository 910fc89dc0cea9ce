"""Search one collection, or several."""

from functools import partial

from fastapi import APIRouter, Response

from app.api.declared import keyed
from app.api.dependencies import Access, CurrentServices, SearchAccess, SearchPrincipal, visible_collections
from app.api.query_recording import record_query
from app.api.replies import reply
from app.api.schemas.search import SearchReply, SearchRequest, SeveralSearchRequest
from app.api.searching import one_page, run_search, search_plan, search_reply
from app.api.strict_route import StrictRoute
from app.catalog.query_log import Operation
from app.retrieval.limits import Limits
from app.retrieval.plan import SearchPlan
from app.retrieval.run import SharedWork
from app.retrieval.search import SearchResult
from app.retrieval.several import Target, search_several

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["search"])


@router.post(
    "/collections/{collection}/search",
    operation_id="search.run",
    summary="Find the passages that answer a query",
    response_model=SearchReply,
    responses=keyed(404, 409, 413, 415, 502),
)
def search(access: SearchAccess, body: SearchRequest) -> Response:
    """Answer passages, best first, with each leg's score and rank."""
    plan = search_plan(access, body, body.query)
    found = run_search(access, plan)
    record_query(access, Operation.SEARCH, body.query, body, found)
    return reply(search_reply(found, body.query))


@router.post(
    "/search",
    operation_id="search.several",
    summary="Find the passages of several collections that answer a query",
    response_model=SearchReply,
    responses=keyed(404, 409, 413, 415, 502),
)
def search_collections(services: CurrentServices, principal: SearchPrincipal, body: SeveralSearchRequest) -> Response:
    """Answer passages of all of them, best first; each names its collection.

    Every collection is searched with its own defaults and its own first `top_k`, and their ranks are fused. The query
    is transformed once, and embedded once by each embedding model.
    """
    one_page(body, "a search of several collections", "/cursor")
    found = visible_collections(services, principal, body.collections, services.settings.max_search_collections)
    accesses = [Access(services, principal, collection) for collection in found]
    plans = [search_plan(access, body, body.query) for access in accesses]
    targets = [
        Target(access.collection.name, partial(_run, access, body, plan))
        for access, plan in zip(accesses, plans, strict=True)
    ]
    together = search_several(targets, max(plan.top_k for plan in plans), Limits.of(services.settings))
    return reply(search_reply(together, body.query))


def _run(access: Access, body: SeveralSearchRequest, plan: SearchPlan, shared: SharedWork) -> SearchResult:
    found = run_search(access, plan, shared)
    record_query(access, Operation.SEARCH_SEVERAL, body.query, body, found)
    return found
