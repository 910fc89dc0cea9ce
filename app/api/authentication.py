"""Know who asks, before anything else is read: every path but the two probes needs a valid key."""

import base64
import binascii

# Private, but what the router itself matches: whatever this module takes a path for must be what the route serves.
from starlette._utils import get_route_path
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import problem_response
from app.bootstrap import Services
from app.catalog.collections import Collection
from app.catalog.principal import Principal
from app.errors import Unauthenticated

OPEN_PATHS = frozenset({"/livez", "/readyz"})
BROWSER_PATHS = frozenset({"/docs", "/openapi.json"})
"""Paths that also take HTTP Basic with the key as the password, since a browser cannot send a bearer token."""

_COLLECTIONS = "/v1/collections/"
_BROWSER_CHALLENGE = 'Basic realm="footnote", charset="UTF-8"'


class Authentication:
    """Put the `Principal` of the request's key into its state and count the request against the key's rate.

    The collection that the path names is put beside it, as the catalog holds it; `dependencies` tells who may see it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or answer 401 or 429."""
        if scope["type"] != "http" or (path := get_route_path(scope)) in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        is_browser_path = path in BROWSER_PATHS
        try:
            secret = _secret(Headers(scope=scope).get("authorization", ""), is_browser_path)
            services: Services = scope["app"].state.services
            name = _collection_name(path)
            admitted = _admit_at_once(services, secret, name)
            if admitted is None:
                admitted = await run_in_threadpool(_admit, services, secret, name)
        except Unauthenticated as error:
            challenge = {"WWW-Authenticate": _BROWSER_CHALLENGE} if is_browser_path else None
            await problem_response(error, scope, challenge)(scope, receive, send)
            return
        principal, collection = admitted
        scope.setdefault("state", {}).update(principal=principal, collection=collection)
        await self._app(scope, receive, send)


def _admit_at_once(
    services: Services, secret: str, collection_name: str | None
) -> tuple[Principal, Collection | None] | None:
    """Return what `_admit` would where all of it is remembered, else `None`: a change of thread costs a half more."""
    collection = None if collection_name is None else services.collections.remembered(collection_name)
    if collection is None and collection_name is not None:
        return None
    principal = services.api_keys.remembered(secret)
    if principal is None:
        return None
    services.rate_limits.check(principal)
    return principal, collection


def _admit(services: Services, secret: str, collection_name: str | None) -> tuple[Principal, Collection | None]:
    """Return whose secret it is, and what the catalog holds of the collection, whether or not the key may see it.

    Each change of thread costs a busy server more than either look-up, so that both are one.
    """
    principal = services.api_keys.authenticate(secret)
    services.rate_limits.check(principal)
    return principal, None if collection_name is None else services.collections.get(collection_name)


def _collection_name(path: str) -> str | None:
    """Return the name that stands in the path of an operation on a collection."""
    if not path.startswith(_COLLECTIONS):
        return None
    return path.removeprefix(_COLLECTIONS).partition("/")[0] or None


def _secret(authorization: str, is_browser_path: bool) -> str:
    scheme, _, credentials = authorization.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "bearer" and credentials:
        return credentials
    if is_browser_path and scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            raise Unauthenticated("the Basic credentials cannot be read") from None
    raise Unauthenticated(
        "this request carries no key",
        hint="send the header Authorization: Bearer <key>; the admin key is in admin.key of the server's data folder "
        "(data/admin.key), and POST /v1/keys makes others",
    )
