"""Turn a request's search options, the collection's defaults and the key's filter into one plan, and run it."""

from collections.abc import Iterable
from typing import TypeVar

from app.api.dependencies import Access
from app.api.replies import current_request_id, notices, rounded
from app.api.schemas.analysis import AnalysisSettings
from app.api.schemas.search import (
    ContextReply,
    FacetValueReply,
    GroupMemberReply,
    LegScoreReply,
    PassageReply,
    QueryReply,
    ScoresReply,
    SearchReply,
    SpanReply,
    TraceStageReply,
)
from app.api.schemas.search_options import SearchOptions
from app.api.schemas.strict import Reply, unknown_name
from app.domain import Passage
from app.errors import FieldError, InvalidRequest
from app.filters import Filter
from app.indexes.languages import STEMMERS
from app.retrieval.options import plan_search
from app.retrieval.plan import SearchPlan
from app.retrieval.present import search_present
from app.retrieval.run import SharedWork
from app.retrieval.search import SearchResult
from app.retrieval.vocabulary import Vocabulary
from app.settings import Settings
from app.stores.filters import parse_filter

Member = TypeVar("Member", bound=Reply)


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
        max_age=access.collection.max_age,
        vocabulary=Vocabulary.of(access.collection.settings),
        query_pointer=query_pointer,
        options_pointer=options_pointer,
    )


def check_defaults(settings: Settings, defaults: SearchOptions) -> None:
    """Raise `InvalidRequest` for defaults of a collection that no search could use, as a cursor, which is of one."""
    if defaults.cursor is not None:
        raise _no_cursor("/defaults/cursor", "a cursor belongs to one search and is no default")
    plan_search(
        "any", settings, defaults.model_dump(exclude_unset=True, by_alias=True), {}, options_pointer="/defaults"
    )


def check_analysis(settings: Settings, analysis: AnalysisSettings) -> None:
    """Raise `InvalidRequest` for too many words, a stop word of several, and a language without a stemmer."""
    words = len(analysis.stop_words) + sum(map(len, analysis.synonyms))
    if words > settings.max_vocabulary:
        most = settings.max_vocabulary
        detail = f"{words} synonyms and stop words are above the maximum of {most} (FOOTNOTE_MAX_VOCABULARY)"
        raise InvalidRequest(detail, errors=[FieldError("/analysis", "too_many", detail)])
    for place, word in enumerate(analysis.stop_words):
        if len(word.split()) > 1:
            detail = f"the stop word {word!r} must be one word"
            raise InvalidRequest(detail, errors=[FieldError(f"/analysis/stop_words/{place}", "several_words", detail)])
    known = ("auto", *STEMMERS)
    if analysis.language not in known:
        detail = f"the language {unknown_name(analysis.language, known)}"
        raise InvalidRequest(detail, errors=[FieldError("/analysis/language", "unknown_language", detail)])


def run_search(access: Access, plan: SearchPlan, shared: SharedWork | None = None) -> SearchResult:
    """Return what the plan finds in the collection; `shared` is what a search of several does once."""
    with access.services.opened.get(access.collection.id) as opened:
        return search_present(opened, access.embedder_of, access.services.models, access.collection.name, plan, shared)


def one_page(options: SearchOptions, what: str, pointer: str) -> None:
    """Raise `InvalidRequest` for a cursor, which only the search of one collection gives and takes."""
    if options.cursor is not None:
        raise _no_cursor(pointer, f"{what} has one page; raise top_k instead")


def _no_cursor(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, errors=[FieldError(pointer, "not_here", detail)])


def forced_filter(access: Access) -> Filter | None:
    """Return the filter that the key puts before everything it reads."""
    return None if access.principal.filter is None else parse_filter(access.principal.filter, "/filter")


def search_reply(result: SearchResult, query: str) -> SearchReply:
    """Return the result as it is answered."""
    return SearchReply(
        data=[_passage_reply(passage) for passage in result.passages],
        query=QueryReply(original=query, used=list(result.queries_used), mode=result.mode),
        has_more=result.next_cursor is not None,
        next_cursor=result.next_cursor,
        facets={
            field: [FacetValueReply(value=value, count=count) for value, count in counts]
            for field, counts in result.facets.items()
        },
        degraded=list(result.degraded),
        warnings=notices(result.warnings),
        timings_ms=rounded(result.timings_ms),
        trace=None if result.trace is None else [TraceStageReply.model_validate(stage) for stage in result.trace],
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
        scores=ScoresReply(**legs, fused=passage.fused, rerank=passage.rerank),
        context=None if passage.context is None else ContextReply.model_validate(passage.context),
        highlights=_replies(SpanReply, passage.highlights),
        merged=list(passage.merged),
        group=_replies(GroupMemberReply, passage.group),
        metadata=dict(passage.metadata),
    )


def _replies(kind: type[Member], found: Iterable[object] | None) -> list[Member] | None:
    return None if found is None else [kind.model_validate(each) for each in found]
