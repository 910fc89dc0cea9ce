"""Erase what the catalog remembers of a collection's past, since it quotes documents that may be deleted."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, delete, select

from app.catalog.job import Job, JobState
from app.catalog.query_log import clear_queries
from app.catalog.tables import idempotency_keys, jobs, webhook_deliveries, webhooks
from app.catalog.webhook import DeliveryState

_BATCH = 500
_RETRYABLE = (JobState.FAILED, JobState.CANCELLED)


def erase_past(
    connection: Connection,
    collection_id: str,
    keeps: Callable[[Job], bool],
    is_there: Callable[[str], bool] = lambda _: True,
    *,
    now: datetime,
) -> int:
    """Forget finished jobs, remembered answers, logged queries, ended deliveries, and those about what is not there.

    A failed or cancelled job stays, so that it can be retried, if it `keeps`. Returns how many jobs went.
    """
    its_jobs = jobs.c.collection_id == collection_id
    finished = select(jobs).where(its_jobs, jobs.c.finished_at.is_not(None))
    gone = [
        row["sequence"]
        for row in connection.execute(finished).mappings()
        if not (row["state"] in _RETRYABLE and keeps(Job.of(row)))
    ]
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
    for document_id in list(connection.scalars(select(told).where(ours).distinct())):
        if document_id is not None and not is_there(document_id):
            connection.execute(delete(webhook_deliveries).where(ours, told == document_id))
    return len(gone)
