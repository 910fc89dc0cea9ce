"""What routes are given: the services, who asks, and the collection they may use. Every tenant check is here."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from app.bootstrap import Services
from app.catalog.api_keys import ApiKey
from app.catalog.collections import Collection
from app.catalog.principal import Principal, Role
from app.embedding_space import EmbeddingSpace
from app.errors import FieldError, InsufficientScope, InvalidRequest, NotFound
from app.inference.port import Embedder

bearer = HTTPBearer(scheme_name="key", description="The admin key, or a key from POST /v1/keys", auto_error=False)


async def current_services(request: Request) -> Services:
    """Return the process's services."""
    services: Services = request.app.state.services
    return services


async def current_principal(request: Request, _credentials: Annotated[object, Security(bearer)]) -> Principal:
    """Return whose key the request carries, as `authentication` found it."""
    principal: Principal = request.state.principal
    return principal


CurrentServices = Annotated[Services, Depends(current_services)]
CurrentPrincipal = Annotated[Principal, Depends(current_principal)]
CollectionName = Annotated[str, Path(description="The collection's name", examples=["handbook"])]


@dataclass(frozen=True, slots=True)
class Access:
    """A collection, and a key that may do with it what the route does."""

    services: Services
    principal: Principal
    collection: Collection

    @property
    def embedder(self) -> Embedder:
        """Return the collection's embedder; raise `EmbeddingModelMismatch` where its model is not configured."""
        return self.services.embedders.of_collection(self.collection.embedding_model)

    def embedder_of(self, space: EmbeddingSpace | None) -> Embedder:
        """Return the embedder of the collection's vectors, or of its model while it has none; raise as `embedder`."""
        return self.services.embedders.of_vectors(space, self.collection.embedding_model)


def require(role: Role) -> Callable[..., Awaitable[Access]]:
    """Return the dependency that gives `Access` to the collection in the path.

    Raises `NotFound` for a collection that is not there or not of this key, then `InsufficientScope`.
    """

    # One dependency and not three, each of which FastAPI would solve for every request.
    async def access(
        request: Request, collection: CollectionName, _credentials: Annotated[object, Security(bearer)]
    ) -> Access:
        services = await current_services(request)
        principal = await current_principal(request, _credentials)
        held: Collection | None = request.state.collection
        if held is None or held.name != collection:
            # A route may have the name in another place of its path than authentication looks at.
            held = await run_in_threadpool(services.collections.get, collection)
        found = _visible(held, principal, collection)
        check_role(principal, role)
        return Access(services, principal, found)

    return access


def require_role(role: Role) -> Callable[..., Awaitable[Principal]]:
    """Return the dependency of routes outside a collection: a key with at least this role."""

    async def principal_with_role(principal: CurrentPrincipal) -> Principal:
        check_role(principal, role)
        return principal

    return principal_with_role


def visible_collection(services: Services, principal: Principal, name: str) -> Collection:
    """Return the collection, or raise the `NotFound` that tells nothing of other tenants."""
    return _visible(services.collections.get(name), principal, name)


def _visible(collection: Collection | None, principal: Principal, name: str) -> Collection:
    if collection is None or not principal.may_see(collection.id):
        raise NotFound(f"there is no collection {name[:100]!r}")
    return collection


def visible_collections(
    services: Services, principal: Principal, names: Sequence[str] | None, most: int
) -> list[Collection]:
    """Return the named collections, or for `None` all that the key opens; raise `NotFound` as `visible_collection`.

    Raises `InvalidRequest` for more than `most` (FOOTNOTE_MAX_SEARCH_COLLECTIONS).
    """
    if names is not None:
        found = [visible_collection(services, principal, name) for name in dict.fromkeys(names)]
    else:
        found = [each for each in services.collections.every() if principal.may_see(each.id)]
    if not 1 <= len(found) <= most:
        detail = f"{len(found)} collections; a search takes 1 to {most} (FOOTNOTE_MAX_SEARCH_COLLECTIONS)"
        raise InvalidRequest(detail, errors=[FieldError("/collections", "out_of_range", detail)])
    return found


def visible_key(services: Services, principal: Principal, key_id: str) -> ApiKey:
    """Return the key, or raise the `NotFound` that tells nothing of other tenants."""
    key = services.api_keys.get(key_id)
    if key is None or not all(principal.may_see(collection_id) for collection_id in key.collection_ids):
        raise NotFound(f"there is no key {key_id[:100]!r}")
    check_role(principal, Role.OWNER)
    return key


def check_role(principal: Principal, needed: Role) -> None:
    """Raise `InsufficientScope` that names both roles."""
    if not principal.role.allows(needed):
        raise InsufficientScope(
            f"this needs the role {needed.value}; the key's role is {principal.role.value}",
            hint="use a key with that role",
            extra={"needed_role": needed.value, "role": principal.role.value},
        )
    if needed is Role.OWNER:
        check_sees_all(principal)


def check_sees_all(principal: Principal) -> None:
    """Raise `InsufficientScope` for a key with a filter, which may not look at or act on what the filter hides."""
    if principal.filter is not None:
        raise InsufficientScope(
            "this is about the whole collection; the key's filter hides a part of it",
            hint="use a key without a filter",
        )


SearchAccess = Annotated[Access, Depends(require(Role.SEARCH))]
AskAccess = Annotated[Access, Depends(require(Role.ASK))]
IngestAccess = Annotated[Access, Depends(require(Role.INGEST))]
OwnerAccess = Annotated[Access, Depends(require(Role.OWNER))]
SearchPrincipal = Annotated[Principal, Depends(require_role(Role.SEARCH))]
AdminPrincipal = Annotated[Principal, Depends(require_role(Role.ADMIN))]
