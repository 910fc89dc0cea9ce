"""Collections: make, look, change, delete, count."""

from typing import Any

from fastapi import APIRouter, Response

from app.api.collection_settings import allowed_quotas, collection_reply, settings_of
from app.api.declared import keyed
from app.api.dependencies import (
    Access,
    CollectionName,
    CurrentPrincipal,
    CurrentServices,
    IngestAccess,
    OwnerAccess,
    SearchAccess,
    check_role,
    check_sees_all,
    visible_collection,
)
from app.api.replies import DEFAULT_LIMIT, Cursor, Limit, reply
from app.api.schemas.collections import (
    CollectionList,
    CollectionPatch,
    CollectionReply,
    CollectionSettings,
    CollectionStats,
    QuotaUse,
)
from app.api.schemas.strict import unknown_name
from app.api.searching import check_analysis, check_defaults
from app.api.strict_route import StrictRoute
from app.bootstrap import Services
from app.catalog.collections import Collection
from app.catalog.principal import Principal, Role
from app.errors import FieldError, NameTaken, UnknownField
from app.ingestion.chunkers.options import check_collection_chunking, completed_chunking
from app.ingestion.collections import change_notices, create_collection, remove_collection, update_collection
from app.ingestion.quotas import Quotas

router = APIRouter(prefix="/v1/collections", route_class=StrictRoute, tags=["collections"])


@router.get("", operation_id="collections.list", summary="List collections, newest first", responses=keyed())
def list_collections(
    services: CurrentServices, principal: CurrentPrincipal, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> CollectionList:
    """Answer the collections that the key opens."""
    page, next_cursor = services.collections.list(ids=principal.collection_ids, limit=limit, cursor=cursor)
    return CollectionList(
        data=[collection_reply(collection) for collection in page],
        has_more=next_cursor is not None,
        next_cursor=next_cursor,
    )


@router.put(
    "/{collection}",
    operation_id="collections.put",
    summary="Make a collection, or replace its settings",
    response_model=CollectionReply,
    responses=keyed(403, 404, 409, 413, 415, 502, 507)
    | {201: {"model": CollectionReply, "description": "The collection was made"}},
)
def put_collection(
    services: CurrentServices, principal: CurrentPrincipal, collection: CollectionName, body: CollectionSettings
) -> Response:
    """Make the collection, which needs the admin key, or replace all of its settings; its documents stay."""
    if principal.role is Role.ADMIN and services.collections.get(collection) is None:
        try:
            made = _create(services, collection, body)
            return reply(collection_reply(made, change_notices(services.ingestion, None, made)), 201)
        except NameTaken:
            pass  # Somebody else made it at the same moment.
    access = _owned(services, principal, collection)
    _check(services, body)
    settings = settings_of(body) | {"quotas": allowed_quotas(access, body)}
    return reply(_change(access, body.title, body.description, settings))


@router.get("/{collection}", operation_id="collections.get", summary="Look at a collection", responses=keyed(404))
def get_collection(access: SearchAccess) -> CollectionReply:
    """Answer the collection's settings."""
    return collection_reply(access.collection)


@router.patch(
    "/{collection}",
    operation_id="collections.update",
    summary="Change some settings of a collection",
    responses=keyed(403, 404, 409, 413, 415, 502, 507),
)
def patch_collection(access: OwnerAccess, body: CollectionPatch) -> CollectionReply:
    """Change the fields that the body names; the documents stay as they are until they are sent again."""
    _check(access.services, body)
    before, given = access.collection, body.model_fields_set
    asked = settings_of(body) | {"quotas": allowed_quotas(access, body)}
    settings = before.settings | {name: value for name, value in asked.items() if name in given}
    title = body.title if "title" in given else before.title
    description = body.description if "description" in given else before.description
    return _change(access, title, description, settings)


@router.delete(
    "/{collection}",
    operation_id="collections.delete",
    summary="Delete a collection with everything in it",
    status_code=204,
    response_class=Response,
    responses=keyed(403, 404),
)
def delete_collection(access: OwnerAccess) -> Response:
    """Delete the collection, its documents, jobs and keys; nothing of it is left on the disk."""
    remove_collection(access.services.ingestion, access.collection)
    return Response(status_code=204)


@router.get(
    "/{collection}/stats",
    operation_id="collections.stats",
    summary="Count what a collection holds",
    responses=keyed(403, 404),
)
def collection_stats(access: IngestAccess) -> CollectionStats:
    """Answer counts of documents, chunks and bytes."""
    check_sees_all(access.principal)
    with access.services.opened.get(access.collection.id) as opened:
        stats, space = opened.store.stats(), opened.store.embedding_space()
    return CollectionStats(
        documents=stats.documents,
        chunks=stats.chunks,
        characters=stats.characters,
        revision=stats.revision,
        database_bytes=stats.database_bytes,
        original_bytes=stats.original_bytes,
        embedding=None
        if space is None
        else {"provider": space.provider, "model": space.model, "dimensions": space.dimensions},
        quotas={
            name: QuotaUse(limit=limit, used=used)
            for name, (limit, used) in Quotas.of(access.collection).use(stats).items()
        },
    )


def _check(services: Services, body: CollectionSettings) -> None:
    """Raise `InvalidRequest` for what only the service's own settings can tell."""
    model, known = body.embedding.model, services.embedders.available()
    if model is not None and model not in known:
        pointer = "/embedding/model"
        detail = f"the embedding model {unknown_name(model, known)}"
        raise UnknownField(detail, errors=[FieldError(pointer, "unknown_field", detail)])
    window = services.embedders.get(model or services.embedders.default_model).window_tokens
    check_collection_chunking(completed_chunking(body.chunking.given()), window)
    check_analysis(services.settings, body.analysis)
    check_defaults(services.settings, body.defaults)


def _owned(services: Services, principal: Principal, name: str) -> Access:
    collection = visible_collection(services, principal, name)
    check_role(principal, Role.OWNER)
    return Access(services, principal, collection)


def _create(services: Services, name: str, body: CollectionSettings) -> Collection:
    _check(services, body)
    return create_collection(
        services.ingestion, name, title=body.title, description=body.description, settings=settings_of(body)
    )


def _change(access: Access, title: str | None, description: str | None, settings: dict[str, Any]) -> CollectionReply:
    before = access.collection
    if settings["embedding"].get("model") is None:
        settings = settings | {"embedding": before.settings["embedding"]}
    settings = settings | {"chunking": completed_chunking(settings["chunking"])}
    if (title, description, settings) == (before.title, before.description, before.settings):
        return collection_reply(before)
    ingestion = access.services.ingestion
    after = update_collection(ingestion, before, title=title, description=description, settings=settings)
    return collection_reply(after, change_notices(ingestion, before, after))
