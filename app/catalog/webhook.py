"""What a webhook, an event and a delivery are, as they leave the catalog."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import RowMapping


class DeliveryState(StrEnum):
    """Where a delivery stands; a pending one is tried at its `next_at`."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a collection; `data` is JSON, and `id` is the same for every webhook."""

    name: str
    data: dict[str, Any]
    id: str = field(default_factory=lambda: f"evt_{secrets.token_hex(12)}")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where events of these names are sent; an inactive one gets none. The secret signs what is sent."""

    id: str
    collection_id: str
    url: str
    secret: str = field(repr=False)
    events: tuple[str, ...]
    active: bool
    created_at: datetime

    @classmethod
    def of(cls, row: RowMapping) -> "Webhook":
        """Return the webhook of a row of the table."""
        return cls(**{**row, "events": tuple(row["events"])})


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event on its way to one webhook; `status` and `error` are of the last attempt, if it failed."""

    id: str
    webhook_id: str
    event: str
    payload: dict[str, Any]
    state: DeliveryState
    attempts: int
    status: int | None
    error: str | None
    owner: str | None
    created_at: datetime
    next_at: datetime | None
    delivered_at: datetime | None

    @classmethod
    def of(cls, row: RowMapping) -> "Delivery":
        """Return the delivery of a row of the table."""
        return cls(**{**row, "state": DeliveryState(row["state"])})
