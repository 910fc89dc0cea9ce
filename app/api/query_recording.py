"""What the query log keeps of a search or a question once it is answered."""

import json
import secrets
from typing import Any

from app.api.dependencies import Access
from app.api.replies import current_request_id
from app.api.schemas.strict import Request
from app.catalog.query_log import LoggedHit, LoggedQuery, Operation, keeps_queries
from app.domain import Answer
from app.retrieval.search import SearchResult
from app.stores.column_types import utc_now

MOST_QUERY_CHARACTERS = 1000
MOST_HITS = 10
MOST_OPTION_CHARACTERS = 2000
"""JSON of all options together; those that do not fit are named with `OMITTED` in their place."""

OMITTED = "…"

_NOT_OPTIONS: Any = {"query": True, "question": True, "messages": True, "collections": True, "search": {"messages"}}
"""A log must hold no conversation, and nothing of other collections, which may be another tenant's."""


def record_query(
    access: Access,
    operation: Operation,
    query: str,
    body: Request,
    found: SearchResult,
    answer: Answer | None = None,
) -> None:
    """Have what was asked kept in the collection's log, where its settings want it; costs no time and never fails.

    Warnings and time are those of the answer that was made of what was `found`, if there is one.
    """
    if not keeps_queries(access.collection.settings, access.principal.role):
        return
    told = found if answer is None else answer
    access.services.query_recorder.add(
        LoggedQuery(
            id=f"qry_{secrets.token_hex(12)}",
            collection_id=access.collection.id,
            created_at=utc_now(),
            operation=operation,
            query=query[:MOST_QUERY_CHARACTERS],
            query_characters=len(query),
            key_id=access.principal.key_id,
            mode=found.mode,
            options=small_options(
                body.model_dump(mode="json", exclude_unset=True, by_alias=True, exclude=_NOT_OPTIONS)
            ),
            hit_count=len(found.passages),
            hits=tuple(
                LoggedHit(passage.rank, passage.chunk_id, passage.document_id, passage.score)
                for passage in found.passages[:MOST_HITS]
            ),
            degraded=found.degraded,
            warnings=tuple(dict.fromkeys(warning.code for warning in told.warnings)),
            total_ms=told.timings_ms["total"],
            request_id=current_request_id(),
        )
    )


def small_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options whose JSON fits, the small ones first, and `OMITTED` in the place of the others."""
    lengths = {name: len(json.dumps(value, ensure_ascii=False)) for name, value in options.items()}
    left = MOST_OPTION_CHARACTERS
    kept = dict(options)
    for name in sorted(lengths, key=lengths.__getitem__):
        left -= lengths[name]
        if left < 0:
            kept[name] = OMITTED
    return kept
