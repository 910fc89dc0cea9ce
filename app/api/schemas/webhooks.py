"""Bodies of the webhooks routes."""

from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field

from app.api.schemas.fetching import Url
from app.api.schemas.strict import Reply, Request
from app.catalog.webhook import DeliveryState

EventName = Literal["document.ready", "document.failed", "job.finished"]

_TIME = "2026-01-31T12:00:00Z"

_WEBHOOK: dict[str, Any] = {
    "id": "whk_41d2c3b4a5968778695a4b3c",
    "url": "https://hooks.example/footnote",
    "events": ["document.ready", "document.failed"],
    "active": True,
    "created_at": _TIME,
}

_DELIVERY: dict[str, Any] = {
    "id": "dlv_0a1b2c3d4e5f60718293a4b5",
    "webhook_id": _WEBHOOK["id"],
    "event": "document.ready",
    "payload": {
        "id": "evt_5b6c7d8e9f00112233445566",
        "event": "document.ready",
        "created_at": _TIME,
        "collection": "handbook",
        "data": {
            "job_id": "job_7f3a0c1d2e4b5a6978801234",
            "kind": "ingest",
            "document_id": "leave-2026",
            "outcome": "updated",
            "version": 2,
            "etag": '"sha256-9f2c3a41d05be6f7788990a1b2c3d4e5f6071829"',
            "chunks": {"total": 42, "embedded": 3, "reused": 39},
        },
    },
    "state": "delivered",
    "attempts": 1,
    "status": 204,
    "error": None,
    "created_at": _TIME,
    "next_at": None,
    "delivered_at": _TIME,
}


class WebhookBody(Request):
    """Where to send which events."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": _WEBHOOK["url"], "events": _WEBHOOK["events"]}]})

    url: Url
    events: list[EventName] = Field(
        default_factory=lambda: list(get_args(EventName)),
        min_length=1,
        max_length=3,
        description="What it is told of; absent: everything",
    )


class WebhookReply(Reply):
    """A webhook without its secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [_WEBHOOK]})

    id: str
    url: str
    events: list[str]
    active: bool = Field(description="False once its receiver has answered 410; make another one then")
    created_at: datetime


class NewWebhookReply(WebhookReply):
    """A webhook with its secret, which is shown this once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_WEBHOOK | {"secret": "whsec_…"}]})

    secret: str = Field(description="Signs what is sent: see `Footnote-Signature`")


class WebhookList(Reply):
    """One page of webhooks, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [_WEBHOOK], "has_more": False, "next_cursor": None}]}
    )

    data: list[WebhookReply]
    has_more: bool
    next_cursor: str | None


class DeliveryReply(Reply):
    """One event on its way to a webhook."""

    model_config = ConfigDict(json_schema_extra={"examples": [_DELIVERY]})

    id: str
    webhook_id: str
    event: str
    payload: dict[str, Any] = Field(description="The body that is sent")
    state: DeliveryState
    attempts: int
    status: int | None = Field(description="What the receiver answered last")
    error: str | None = Field(description="What was wrong with the last attempt")
    created_at: datetime
    next_at: datetime | None = Field(description="When it is tried next")
    delivered_at: datetime | None


class DeliveryList(Reply):
    """One page of deliveries, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [_DELIVERY], "has_more": False, "next_cursor": None}]}
    )

    data: list[DeliveryReply]
    has_more: bool
    next_cursor: str | None
