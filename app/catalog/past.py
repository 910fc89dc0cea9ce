"""Erase what the catalog remembers of a collection's past, since it quotes documents that may be deleted."""

from collections.abc import Callable

from sqlalchemy import Connection, delete, select

from app.catalog.job import Job, JobState
from app.catalog.tables import idempotency_keys, jobs, webhook_deliveries, webhooks
from app.catalog.webhook import DeliveryState

_BATCH = 500
_RETRYABLE = (JobState.FAILED, JobState.CANCELLED)


def erase_past(connection: Connection, collection_id: str, keeps: Callable[[Job], bool]) -> int:
    """Forget finished jobs, remembered answers and ended deliveries; return how many jobs went.

    A failed or cancelled job stays, so that it can be retried, if it `keeps`.
    """
    ours = jobs.c.collection_id == collection_id
    finished = select(jobs).where(ours, jobs.c.finished_at.is_not(None))
    gone = [
        row["sequence"]
        for row in connection.execute(finished).mappings()
        if not (row["state"] in _RETRYABLE and keeps(Job.of(row)))
    ]
    for first in range(0, len(gone), _BATCH):
        connection.execute(delete(jobs).where(jobs.c.sequence.in_(gone[first : first + _BATCH])))
    answered = (idempotency_keys.c.collection_id == collection_id) & idempotency_keys.c.status.is_not(None)
    connection.execute(delete(idempotency_keys).where(answered))
    hooks = select(webhooks.c.id).where(webhooks.c.collection_id == collection_id)
    ended = webhook_deliveries.c.state != DeliveryState.PENDING
    connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id.in_(hooks), ended))
    return len(gone)
