"""Erase what the catalog remembers of a collection's past, since it quotes documents that may be deleted."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import Connection, delete, select

from app.catalog.job import Job, JobState
from app.catalog.query_log import clear_queries
from app.catalog.tables import idempotency_keys, jobs, webhook_deliveries, webhooks
from app.catalog.webhook import DeliveryState

_BATCH = 500
_RETRYABLE = (JobState.FAILED, JobState.CANCELLED)

Retried: TypeAlias = Callable[[Sequence[Job]], AbstractSet[str]]
"""Tells the ids of those of some failed or cancelled jobs that can be retried."""

Present: TypeAlias = Callable[[Sequence[str]], AbstractSet[str]]
"""Tells those of some document ids that are there."""


def erase_past(
    connection: Connection,
    collection_id: str,
    retried: Retried,
    present: Present = frozenset,
    *,
    now: datetime,
) -> int:
    """Forget finished jobs, remembered answers, logged queries, ended deliveries, and those about what is not there.

    Returns how many jobs went. Both questions are asked for many at once.
    """
    its_jobs = jobs.c.collection_id == collection_id
    finished = select(jobs).where(its_jobs, jobs.c.finished_at.is_not(None))
    gone: list[int] = []
    for rows in connection.execute(finished).mappings().partitions(_BATCH):
        kept = retried([Job.of(row) for row in rows if row["state"] in _RETRYABLE])
        gone += [row["sequence"] for row in rows if row["id"] not in kept]
    for first in range(0, len(gone), _BATCH):
        connection.execute(delete(jobs).where(jobs.c.sequence.in_(gone[first : first + _BATCH])))
    answered = (idempotency_keys.c.collection_id == collection_id) & idempotency_keys.c.status.is_not(None)
    connection.execute(delete(idempotency_keys).where(answered))
    clear_queries(connection, collection_id, now)
    hooks = select(webhooks.c.id).where(webhooks.c.collection_id == collection_id)
    ours = webhook_deliveries.c.webhook_id.in_(hooks)
    ended = webhook_deliveries.c.state != DeliveryState.PENDING
    connection.execute(delete(webhook_deliveries).where(ours, ended))
    told = webhook_deliveries.c.payload["data"]["document_id"].as_string()
    for ids in list(connection.scalars(select(told).where(ours, told.is_not(None)).distinct()).partitions(_BATCH)):
        absent = sorted(set(ids) - present(ids))
        connection.execute(delete(webhook_deliveries).where(ours, told.in_(absent)))
    return len(gone)
