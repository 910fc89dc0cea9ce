"""Where a collection's events are sent, and each event on its way there."""

import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.catalog.database import Database
from app.catalog.paging import NewestFirst
from app.catalog.tables import collections, webhook_deliveries, webhooks
from app.catalog.webhook import Delivery, DeliveryState, Event, Webhook
from app.errors import Conflict, NotFound
from app.stores.column_types import UtcTime, utc_now

_BATCH = 500
_newest_webhooks = NewestFirst(webhooks)
_newest_deliveries = NewestFirst(webhook_deliveries)


class Webhooks:
    """The webhooks of all collections and their deliveries; thread-safe, and atomic between processes.

    `wake` is notified when this process announces an event. A collection has `most` webhooks, since each that does not
    answer keeps an attempt under way for a time limit.
    """

    def __init__(self, database: Database, *, most: int = 20, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._most = most
        self._clock = clock
        self.wake = threading.Condition()
        self._count = itertools.count(1)
        self._turns: dict[str, int] = {}
        """When each collection that waits had its last turn in this process; 0 is never."""

    # --- webhooks ---

    def create(self, collection_id: str, url: str, events: Sequence[str]) -> Webhook:
        """Make a webhook with a secret of its own.

        Raises `NotFound` where the collection is gone, and `Conflict` where it has as many as it may.
        """
        values = {
            "id": f"whk_{secrets.token_hex(12)}",
            "collection_id": collection_id,
            "url": url,
            "secret": f"whsec_{secrets.token_urlsafe(32)}",
            "events": list(events),
            "active": True,
            "created_at": self._clock(),
        }
        try:
            with self._database.write() as connection:
                ours = select(func.count()).select_from(webhooks).where(webhooks.c.collection_id == collection_id)
                if connection.execute(ours).scalar_one() >= self._most:
                    raise Conflict(
                        f"the collection has {self._most} webhooks, the most that one may have (FOOTNOTE_MAX_WEBHOOKS)",
                        code="too_many_webhooks",
                        hint="delete one that is not needed",
                    )
                row = connection.execute(insert(webhooks).returning(webhooks), values).mappings().one()
        except IntegrityError as error:
            raise NotFound("the collection was deleted meanwhile") from error
        return Webhook.of(row)

    def get(self, collection_id: str, webhook_id: str) -> Webhook | None:
        """Return the webhook if it is this collection's, or `None`."""
        query = select(webhooks).where(_of_collection(collection_id, webhook_id))
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        return None if row is None else Webhook.of(row)

    def list(
        self, collection_id: str, *, limit: int, cursor: str | None = None
    ) -> tuple[Sequence[Webhook], str | None]:
        """Return a page of a collection's webhooks, newest first, and the next page's cursor."""
        query = select(webhooks).where(webhooks.c.collection_id == collection_id)
        with self._database.read() as connection:
            rows = connection.execute(_newest_webhooks.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_webhooks.split(rows, limit)
        return [Webhook.of(row) for row in page], next_cursor

    def delete(self, collection_id: str, webhook_id: str) -> bool:
        """Forget a webhook with its deliveries and return whether there was one."""
        with self._database.write() as connection:
            return bool(connection.execute(delete(webhooks).where(_of_collection(collection_id, webhook_id))).rowcount)

    # --- announce ---

    def announce(self, connection: Connection, collection_id: str, events: Sequence[Event]) -> None:
        """Queue each event for every webhook of the collection that takes it, in the transaction of what happened."""
        takers = select(webhooks, collections.c.name).join(collections)
        rows = connection.execute(takers.where(webhooks.c.collection_id == collection_id, webhooks.c.active))
        for webhook in rows.mappings().all():
            for event in events:
                if event.name in webhook["events"]:
                    connection.execute(insert(webhook_deliveries), self._delivery(webhook, event))

    def notify(self) -> None:
        """Wake who delivers, after what was announced is committed."""
        with self.wake:
            self.wake.notify_all()

    def ping(self, webhook: Webhook, collection: str, event: Event) -> Delivery:
        """Queue one event for one webhook, whatever it takes; raises `NotFound` if it is gone."""
        values = self._delivery({"id": webhook.id, "name": collection}, event)
        try:
            with self._database.write() as connection:
                queued = insert(webhook_deliveries).returning(webhook_deliveries)
                row = connection.execute(queued, values).mappings().one()
        except IntegrityError as error:
            raise NotFound("the webhook was deleted meanwhile") from error
        self.notify()
        return Delivery.of(row)

    # --- deliver ---

    def claim(self, owner: str, lease_seconds: float, *, most_of_one: int = 1) -> tuple[Delivery, Webhook] | None:
        """Take the delivery to attempt next; no other caller gets it until the lease ends.

        A webhook gets one at a time, in order. Collections take turns: first the one with the fewest attempts under
        way, then the one served longest ago; the owner has at most `most_of_one` of the same one under way. An attempt
        whose process dies is made again after the lease: what is sent may arrive twice.
        """
        now = self._clock()
        with self._database.read() as connection:
            if connection.execute(select(webhook_deliveries.c.id).where(_due(now)).limit(1)).first() is None:
                return None
        with self._database.write() as connection:
            chosen = self._next_webhook(connection, owner, now, most_of_one)
            if chosen is None:
                return None
            order = (webhook_deliveries.c.next_at, webhook_deliveries.c.created_at, webhook_deliveries.c.id)
            of_chosen = _due(now) & (webhook_deliveries.c.webhook_id == chosen.id)
            first = select(webhook_deliveries.c.id).where(of_chosen).order_by(*order).limit(1)
            attempt = {"attempts": webhook_deliveries.c.attempts + 1, "next_at": now + timedelta(seconds=lease_seconds)}
            taken = (
                update(webhook_deliveries)
                .where(webhook_deliveries.c.id == first.scalar_subquery())
                .values(owner=owner, **attempt)
            )
            row = connection.execute(taken.returning(webhook_deliveries)).mappings().one()
        return Delivery.of(row), chosen

    def _next_webhook(self, connection: Connection, owner: str, now: datetime, most_of_one: int) -> Webhook | None:
        attempts = connection.execute(_UNDER_WAY, {"now": now}).all()
        busy = {webhook_id for webhook_id, _, _ in attempts}
        of_collection = Counter(collection_id for _, collection_id, _ in attempts)
        ours = Counter(collection_id for _, collection_id, attempting in attempts if attempting == owner)
        waiting = [Webhook.of(row) for row in connection.execute(_WITH_DUE, {"now": now}).mappings()]
        self._turns = {webhook.collection_id: self._turns.get(webhook.collection_id, 0) for webhook in waiting}
        free = [each for each in waiting if each.id not in busy and ours[each.collection_id] < most_of_one]
        if not free:
            return None

        chosen = min(free, key=lambda each: (of_collection[each.collection_id], self._turns[each.collection_id]))
        self._turns[chosen.collection_id] = next(self._count)
        return chosen

    def delivered(self, delivery: Delivery, status: int) -> None:
        """End a delivery that the attempt of `delivery` brought to its receiver."""
        ended = {"state": DeliveryState.DELIVERED, "status": status, "error": None, "delivered_at": self._clock()}
        with self._database.write() as connection:
            connection.execute(update(webhook_deliveries).where(_attempt(delivery)).values(**ended, **_NOT_DUE))

    def failed(self, delivery: Delivery, *, status: int | None, error: str, pause_seconds: float | None) -> None:
        """Note a failed attempt; no pause means that it was the last.

        Whatever else waits for the same webhook waits as long, so that one that is down is not asked once per event.
        """
        told = {"status": status, "error": error}
        with self._database.write() as connection:
            if pause_seconds is None:
                told |= {"state": DeliveryState.FAILED, **_NOT_DUE}
                connection.execute(update(webhook_deliveries).where(_attempt(delivery)).values(told))
                return
            later = self._clock() + timedelta(seconds=pause_seconds)
            again = update(webhook_deliveries).where(_attempt(delivery)).values(**told, owner=None, next_at=later)
            connection.execute(again)
            others = (
                (webhook_deliveries.c.webhook_id == delivery.webhook_id)
                & (webhook_deliveries.c.state == DeliveryState.PENDING)
                & (webhook_deliveries.c.next_at < later)
                & webhook_deliveries.c.owner.is_(None)
            )
            connection.execute(update(webhook_deliveries).where(others).values(next_at=later))

    def deactivate(self, webhook_id: str) -> None:
        """Send a webhook nothing any more, because its receiver says that it is gone; what waits for it fails."""
        waiting = (webhook_deliveries.c.webhook_id == webhook_id) & (
            webhook_deliveries.c.state == DeliveryState.PENDING
        )
        ended = {"state": DeliveryState.FAILED, "error": "the webhook is no longer active", **_NOT_DUE}
        with self._database.write() as connection:
            connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(active=False))
            connection.execute(update(webhook_deliveries).where(waiting).values(ended))

    # --- look ---

    def deliveries(
        self, webhook_id: str, *, state: str | None = None, limit: int, cursor: str | None = None
    ) -> tuple[Sequence[Delivery], str | None]:
        """Return a page of a webhook's deliveries, newest first, and the next page's cursor."""
        query = select(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id)
        if state is not None:
            query = query.where(webhook_deliveries.c.state == state)
        with self._database.read() as connection:
            rows = connection.execute(_newest_deliveries.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_deliveries.split(rows, limit)
        return [Delivery.of(row) for row in page], next_cursor

    def remove_ended(self, before: datetime) -> int:
        """Forget deliveries that ended and were made before that time, some at once; return how many."""
        ended = webhook_deliveries.c.state != DeliveryState.PENDING
        old = select(webhook_deliveries.c.id).where(ended, webhook_deliveries.c.created_at < before).limit(_BATCH)
        removed = 0
        while True:
            with self._database.write() as connection:
                chosen = webhook_deliveries.c.id.in_(old)
                batch = connection.execute(delete(webhook_deliveries).where(chosen)).rowcount
            removed += batch
            if batch < _BATCH:
                return removed

    # --- inside ---

    def _delivery(self, webhook: RowMapping | dict[str, Any], event: Event) -> dict[str, Any]:
        now = self._clock()
        payload = {
            "id": event.id,
            "event": event.name,
            "created_at": now.isoformat().replace("+00:00", "Z"),
            "collection": webhook["name"],
            "data": event.data,
        }
        return {
            "id": f"dlv_{secrets.token_hex(12)}",
            "webhook_id": webhook["id"],
            "event": event.name,
            "payload": payload,
            "state": DeliveryState.PENDING,
            "attempts": 0,
            "status": None,
            "error": None,
            "owner": None,
            "created_at": now,
            "next_at": now,
            "delivered_at": None,
        }


def _due(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    return (webhook_deliveries.c.state == DeliveryState.PENDING) & (webhook_deliveries.c.next_at <= now)


_now: ColumnElement[datetime] = bindparam("now", type_=UtcTime())
_UNDER_WAY = (
    select(webhook_deliveries.c.webhook_id, webhooks.c.collection_id, webhook_deliveries.c.owner)
    .join(webhooks)
    .where(
        webhook_deliveries.c.state == DeliveryState.PENDING,
        webhook_deliveries.c.next_at > _now,
        webhook_deliveries.c.owner.is_not(None),
    )
)
_oldest_due = (
    select(func.min(webhook_deliveries.c.next_at))
    .where(_due(_now), webhook_deliveries.c.webhook_id == webhooks.c.id)
    .scalar_subquery()
)
_WITH_DUE = select(webhooks).where(_oldest_due.is_not(None)).order_by(_oldest_due, webhooks.c.created_at)

_NOT_DUE: dict[str, Any] = {"owner": None, "next_at": None}


def _of_collection(collection_id: str, webhook_id: str) -> ColumnElement[bool]:
    return (webhooks.c.collection_id == collection_id) & (webhooks.c.id == webhook_id)


def _attempt(delivery: Delivery) -> ColumnElement[bool]:
    """Return the condition of a delivery that is still in the attempt which was claimed."""
    return (
        (webhook_deliveries.c.id == delivery.id)
        & (webhook_deliveries.c.owner == delivery.owner)
        & (webhook_deliveries.c.attempts == delivery.attempts)
        & (webhook_deliveries.c.state == DeliveryState.PENDING)
    )
