"""Turn a request's search options, the collection's defaults and the key's filter into one plan, and run it."""

from app.api.dependencies import Access
from app.api.replies import current_request_id, notices, rounded
from app.api.schemas.search import (
    LegScoreReply,
    PassageReply,
    QueryReply,
    ScoresReply,
    SearchReply,
)
from app.api.schemas.search_options import SearchOptions
from app.domain import Passage
from app.filters import Filter
from app.retrieval.options import plan_search
from app.retrieval.plan import SearchPlan
from app.retrieval.present import search_present
from app.retrieval.search import SearchResult
from app.settings import Settings
from app.stores.filters import parse_filter


def search_plan(
    access: Access, options: SearchOptions, query: str, *, query_pointer: str = "/query", options_pointer: str = ""
) -> SearchPlan:
    """Return the plan; what the request says wins over the collection's defaults, and nothing over the key's filter."""
    return plan_search(
        query,
        access.services.settings,
        options.model_dump(exclude_unset=True, by_alias=True),
        access.collection.settings.get("defaults") or {},
        forced_filter=forced_filter(access),
        query_pointer=query_pointer,
        options_pointer=options_pointer,
    )


def check_defaults(settings: Settings, defaults: SearchOptions) -> None:
    """Raise `InvalidRequest` for defaults of a collection that no search could use."""
    plan_search(
        "any", settings, defaults.model_dump(exclude_unset=True, by_alias=True), {}, options_pointer="/defaults"
    )


def run_search(access: Access, plan: SearchPlan) -> SearchResult:
    """Return what the plan finds in the collection."""
    with access.services.opened.get(access.collection.id) as opened:
        return search_present(opened, access.embedder_of, access.services.models, access.collection.name, plan)


def forced_filter(access: Access) -> Filter | None:
    """Return the filter that the key puts before everything it reads."""
    return None if access.principal.filter is None else parse_filter(access.principal.filter, "/filter")


def search_reply(result: SearchResult, query: str) -> SearchReply:
    """Return the result as it is answered."""
    return SearchReply(
        data=[_passage_reply(passage) for passage in result.passages],
        query=QueryReply(original=query, used=list(result.queries_used), mode=result.mode),
        degraded=list(result.degraded),
        warnings=notices(result.warnings),
        timings_ms=rounded(result.timings_ms),
        request_id=current_request_id(),
    )


def _passage_reply(passage: Passage) -> PassageReply:
    legs = {name: LegScoreReply(score=leg.score, rank=leg.rank) for name, leg in passage.legs.items()}
    return PassageReply(
        rank=passage.rank,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        collection=passage.collection,
        title=passage.title,
        text=passage.text,
        start=passage.start,
        end=passage.end,
        page_start=passage.page_start,
        page_end=passage.page_end,
        heading_path=list(passage.heading_path),
        score=passage.score,
        score_type=passage.score_type,
        found_by=list(passage.found_by),
        scores=ScoresReply(**legs, fused=passage.fused),
        metadata=dict(passage.metadata),
    )
