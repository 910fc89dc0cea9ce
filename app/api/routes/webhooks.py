"""Webhooks: make, list, delete, test, and what became of each delivery."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import keyed
from app.api.dependencies import Access, OwnerAccess
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, reply
from app.api.schemas.webhooks import (
    DeliveryList,
    DeliveryReply,
    NewWebhookReply,
    WebhookBody,
    WebhookList,
    WebhookReply,
)
from app.api.strict_route import StrictRoute
from app.catalog.webhook import DeliveryState, Event, Webhook
from app.errors import NotFound
from app.notification import PING

router = APIRouter(prefix="/v1/collections/{collection}/webhooks", route_class=StrictRoute, tags=["webhooks"])

WebhookId = Annotated[str, Path(description="The webhook's id", examples=["whk_41d2"])]


@router.post(
    "",
    operation_id="webhooks.create",
    summary="Make a webhook",
    status_code=201,
    response_model=NewWebhookReply,
    responses=keyed(403, 404, 409, 413, 415, 507),
)
async def create_webhook(access: OwnerAccess, body: WebhookBody, idempotency: IdempotencyKey) -> Response:
    """Answer the webhook with its secret, which is shown this once and signs everything that is sent.

    `Footnote-Signature: t=<seconds>,v1=<hex>` is the HMAC-SHA256 of `<seconds>.<body>`. An answer of 2xx takes a
    delivery; any other is tried again, later each time. What arrives twice has the same `Footnote-Delivery`.
    """

    def create() -> Response:
        url = access.services.notifier.checked(body.url)
        made = access.services.webhooks.create(access.collection.id, url, list(dict.fromkeys(body.events)))
        return reply(NewWebhookReply.model_validate(made), 201)

    return await answered_once(idempotency, lambda: run_in_threadpool(create), access.collection.id, sealed=True)


@router.get("", operation_id="webhooks.list", summary="List webhooks, newest first", responses=keyed(403, 404))
def list_webhooks(access: OwnerAccess, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> WebhookList:
    """Answer the collection's webhooks, without their secrets."""
    page, next_cursor = access.services.webhooks.list(access.collection.id, limit=limit, cursor=cursor)
    data = [WebhookReply.model_validate(webhook) for webhook in page]
    return WebhookList(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.delete(
    "/{webhook_id}",
    operation_id="webhooks.delete",
    summary="Delete a webhook",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404, 507),
)
def delete_webhook(access: OwnerAccess, webhook_id: WebhookId) -> Response:
    """Delete the webhook with its deliveries; nothing more is sent."""
    access.services.webhooks.delete(access.collection.id, _existing(access, webhook_id).id)
    return Response(status_code=204)


@router.get(
    "/{webhook_id}/deliveries",
    operation_id="webhooks.deliveries",
    summary="List a webhook's deliveries, newest first",
    responses=keyed(403, 404),
)
def list_deliveries(
    access: OwnerAccess,
    webhook_id: WebhookId,
    state: Annotated[DeliveryState | None, Query(description="Only in this state")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> DeliveryList:
    """Answer what was sent and what became of it; ended ones are forgotten after FOOTNOTE_JOB_RETENTION_DAYS."""
    webhook = _existing(access, webhook_id)
    page, next_cursor = access.services.webhooks.deliveries(webhook.id, state=state, limit=limit, cursor=cursor)
    data = [DeliveryReply.model_validate(delivery) for delivery in page]
    return DeliveryList(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.post(
    "/{webhook_id}/test",
    operation_id="webhooks.test",
    summary="Send a webhook a ping",
    status_code=202,
    response_model=DeliveryReply,
    responses=keyed(403, 404, 409, 507),
)
async def test_webhook(access: OwnerAccess, webhook_id: WebhookId, idempotency: IdempotencyKey) -> Response:
    """Queue a `ping`, whatever events the webhook takes; its deliveries tell what became of it."""

    def ping() -> Response:
        webhook = _existing(access, webhook_id)
        event = Event(PING, {"webhook_id": webhook.id})
        queued = access.services.webhooks.ping(webhook, access.collection.name, event)
        return reply(DeliveryReply.model_validate(queued), 202)

    return await answered_once(idempotency, lambda: run_in_threadpool(ping), access.collection.id)


def _existing(access: Access, webhook_id: str) -> Webhook:
    webhook = access.services.webhooks.get(access.collection.id, webhook_id)
    if webhook is None:
        raise NotFound(f"there is no webhook {webhook_id[:100]!r} in this collection")
    return webhook
