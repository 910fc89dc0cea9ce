"""Keys: make, list, revoke, rotate. Owners manage those of their own collections, the admin key all."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool

from app.api.declared import keyed
from app.api.dependencies import (
    CurrentPrincipal,
    CurrentServices,
    check_role,
    visible_collection,
    visible_key,
)
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, reply
from app.api.schemas.api_keys import ApiKeyList, ApiKeyReply, ApiKeyRequest, NewApiKeyReply, RotateRequest
from app.api.strict_route import StrictRoute
from app.bootstrap import Services
from app.catalog.api_keys import ApiKey
from app.catalog.principal import Role
from app.stores.filters import parse_filter

router = APIRouter(prefix="/v1/keys", route_class=StrictRoute, tags=["keys"])

KeyId = Annotated[str, Path(description="The key's id", examples=["key_5d1c"])]


@router.post(
    "",
    operation_id="keys.create",
    summary="Make a key",
    status_code=201,
    response_model=NewApiKeyReply,
    responses=keyed(403, 404, 409, 413, 415, 507),
)
async def create_key(
    services: CurrentServices, principal: CurrentPrincipal, body: ApiKeyRequest, idempotency: IdempotencyKey
) -> Response:
    """Answer the key with its secret, which is shown this once."""

    def create() -> Response:
        opened = [visible_collection(services, principal, name) for name in body.collections]
        check_role(principal, Role.OWNER)
        if body.filter is not None:
            parse_filter(body.filter, "/filter")
        key, secret = services.api_keys.create(
            body.name,
            [collection.id for collection in opened],
            Role(body.role),
            filter=body.filter,
            expires_at=body.expires_at,
            requests_per_minute=body.requests_per_minute,
        )
        return _new_key_response(services, key, secret)

    return await answered_once(idempotency, lambda: run_in_threadpool(create), sealed=True)


@router.get("", operation_id="keys.list", summary="List keys, newest first", responses=keyed(403))
def list_keys(
    services: CurrentServices, principal: CurrentPrincipal, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> ApiKeyList:
    """Answer the keys that open nothing but collections of the asking key."""
    check_role(principal, Role.OWNER)
    page, next_cursor = services.api_keys.list(principal.collection_ids, limit=limit, cursor=cursor)
    return ApiKeyList(data=_replies(services, page), has_more=next_cursor is not None, next_cursor=next_cursor)


@router.delete(
    "/{key_id}",
    operation_id="keys.revoke",
    summary="Revoke a key",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404, 507),
)
def revoke_key(services: CurrentServices, principal: CurrentPrincipal, key_id: KeyId) -> Response:
    """End the key now and for good."""
    services.api_keys.revoke(visible_key(services, principal, key_id).id)
    return Response(status_code=204)


@router.post(
    "/{key_id}/rotate",
    operation_id="keys.rotate",
    summary="Replace a key's secret",
    status_code=201,
    response_model=NewApiKeyReply,
    responses=keyed(403, 404, 409, 413, 415, 507),
)
async def rotate_key(
    services: CurrentServices,
    principal: CurrentPrincipal,
    key_id: KeyId,
    body: RotateRequest,
    idempotency: IdempotencyKey,
) -> Response:
    """Make a key like this one; the old secret stays valid for the overlap."""

    def rotate() -> Response:
        found = visible_key(services, principal, key_id)
        key, secret = services.api_keys.rotate(found.id, body.overlap_seconds)
        return _new_key_response(services, key, secret)

    return await answered_once(idempotency, lambda: run_in_threadpool(rotate), sealed=True)


def _new_key_response(services: Services, key: ApiKey, secret: str) -> Response:
    body = NewApiKeyReply(**_replies(services, [key])[0].model_dump(), secret=secret)
    return reply(body, 201)


def _replies(services: Services, keys: Iterable[ApiKey]) -> list[ApiKeyReply]:
    names: dict[str, str | None] = {}
    for collection_id in {collection_id for key in keys for collection_id in key.collection_ids}:
        collection = services.collections.by_id(collection_id)
        names[collection_id] = collection.name if collection else None
    return [
        ApiKeyReply(
            id=key.id,
            name=key.name,
            prefix=key.prefix,
            role=key.role.value,
            collections=sorted(name for opened in key.collection_ids if (name := names[opened])),
            filter=key.filter,
            requests_per_minute=key.requests_per_minute,
            created_at=key.created_at,
            expires_at=key.expires_at,
            last_used_at=key.last_used_at,
            revoked_at=key.revoked_at,
        )
        for key in keys
    ]
