"""Ask one collection."""

from functools import partial

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter

from app.answering.ask import AskOptions, ask
from app.answering.surroundings import chunk_at
from app.api.declared import keyed
from app.api.dependencies import Access, AskAccess
from app.api.query_recording import record_query
from app.api.replies import current_request_id, notices, rounded
from app.api.schemas.ask import (
    AskedReply,
    AskReply,
    AskRequest,
    CitationReply,
    SourceReply,
    SpanReply,
    UsageReply,
)
from app.api.searching import one_page, run_search, search_plan
from app.api.strict_route import StrictRoute
from app.catalog.query_log import Operation
from app.domain import Answer, Citation, Passage
from app.retrieval.search import SearchResult

ASKS_AT_ONCE = 32

router = APIRouter(prefix="/v1/collections/{collection}", route_class=StrictRoute, tags=["ask"])

# A model may think for minutes: questions have threads of their own, so that they take none from searches.
_asks = CapacityLimiter(ASKS_AT_ONCE)


@router.post(
    "/ask",
    operation_id="ask.run",
    summary="Answer a question with citations",
    responses=keyed(403, 404, 409, 413, 415, 502),
)
async def ask_collection(access: AskAccess, body: AskRequest) -> AskReply:
    """Answer from the collection's passages alone, each statement with the exact piece of a source."""
    return await to_thread.run_sync(_answer, access, body, limiter=_asks)


def _answer(access: Access, body: AskRequest) -> AskReply:
    one_page(body.search, "what an answer reads", "/search/cursor")
    found: list[SearchResult] = []

    def find(query: str) -> SearchResult:
        plan = search_plan(access, body.search, query, query_pointer="/question", options_pointer="/search")
        found.append(run_search(access, plan))
        return found[-1]

    instructions = body.instructions
    if "instructions" not in body.model_fields_set:
        instructions = access.collection.settings.get("instructions")
    with access.services.opened.get(access.collection.id) as opened:
        answer = ask(
            body.question,
            search=find,
            language_model=access.services.language_model,
            embedder=access.embedder,
            analyzer=opened.analyzer,
            find_chunk=partial(chunk_at, opened.store),
            options=AskOptions(
                instructions=instructions,
                answerer=body.answerer,
                abstain=body.abstain,
                template=body.template,
                max_context_tokens=body.max_context_tokens,
                max_tokens=body.max_tokens,
                temperature=body.temperature,
            ),
        )
    record_query(access, Operation.ASK, body.question, body, found[-1], answer)
    return _reply(answer)


def _reply(answer: Answer) -> AskReply:
    return AskReply(
        answer=answer.text,
        answered=answer.answered,
        reason=answer.reason,
        citations=[_citation(citation) for citation in answer.citations],
        invalid_citations=answer.invalid_citations,
        sources=[_source(marker, passage) for marker, passage in enumerate(answer.sources, start=1)],
        query=AskedReply(standalone=answer.standalone_question),
        model=answer.model,
        usage=UsageReply(prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens),
        warnings=notices(answer.warnings),
        timings_ms=rounded(answer.timings_ms),
        request_id=current_request_id(),
    )


def _citation(citation: Citation) -> CitationReply:
    return CitationReply(
        marker=citation.marker,
        answer_span=SpanReply(start=citation.answer_start, end=citation.answer_end),
        quote=citation.quote,
        document_id=citation.document_id,
        chunk_id=citation.chunk_id,
        start=citation.start,
        end=citation.end,
        page=citation.page,
        heading_path=list(citation.heading_path),
        verified=citation.verified,
    )


def _source(marker: int, passage: Passage) -> SourceReply:
    return SourceReply(
        marker=marker,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        title=passage.title,
        text=passage.text,
        start=passage.start,
        end=passage.end,
        page_start=passage.page_start,
        page_end=passage.page_end,
        heading_path=list(passage.heading_path),
        score=passage.score,
    )
