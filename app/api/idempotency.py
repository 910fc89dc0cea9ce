"""`Idempotency-Key`: a POST that is sent twice is done once, and both get the first answer."""

import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Annotated

from cryptography.fernet import Fernet
from fastapi import Depends, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.dependencies import CurrentServices
from app.api.json_body import JSONRequest
from app.catalog.idempotency import Idempotency, StoredAnswer

_SEAL = b"answer:"
REPLAYED = {"Idempotent-Replayed": "true"}


@dataclass(frozen=True, slots=True)
class Once:
    """Who sent what under which key; `key` is `None` for a request without one."""

    memory: Idempotency
    key: str | None
    scope: str
    fingerprint: str
    seal: Fernet = field(repr=False)

    def of_payload(self, payload: bytes) -> str:
        """Return the fingerprint together with a payload that was not read as JSON."""
        return _digest(self.fingerprint.encode(), payload)


async def idempotency(
    request: Request,
    services: CurrentServices,
    idempotency_key: Annotated[
        str | None,
        Header(alias="Idempotency-Key", description="A new value for each request; a repeat gets the first answer"),
    ] = None,
) -> Once:
    """Return what tells this request from others."""
    body = await request.body() if isinstance(request, JSONRequest) else b""
    place = f"{request.method} {request.url.path}?{request.url.query}"
    # By the secret and not by the key's id: what another secret has sealed could not be opened.
    caller = request.headers.get("authorization", "").encode()
    return Once(
        memory=services.idempotency,
        key=idempotency_key,
        scope=_digest(caller, place.encode()),
        fingerprint=_digest(body),
        seal=Fernet(
            base64.urlsafe_b64encode(hashlib.sha256(_SEAL + caller + (idempotency_key or "").encode()).digest())
        ),
    )


IdempotencyKey = Annotated[Once, Depends(idempotency)]


async def answered_once(
    once: Once,
    work: Callable[[], Awaitable[Response]],
    collection_id: str | None = None,
    *,
    payload: bytes = b"",
    sealed: bool = False,
) -> Response:
    """Return the work's answer, or the first one's with `Idempotent-Replayed: true`.

    An error is not remembered, so that the request can be sent again. `sealed` keeps an answer that holds a secret
    in a form that only the same key and `Idempotency-Key` open.
    """
    if once.key is None:
        return await work()
    key = once.key
    begin = partial(once.memory.begin, once.scope, key, once.of_payload(payload), collection_id=collection_id)
    first = await run_in_threadpool(begin)
    if first is not None:
        return _replay(first, once.seal if sealed else None)
    try:
        response = await work()
    except Exception:
        await run_in_threadpool(once.memory.abandon, once.scope, key)
        raise
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        await run_in_threadpool(once.memory.abandon, once.scope, key)
        return response
    body = once.seal.encrypt(bytes(response.body)) if sealed else bytes(response.body)
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    await run_in_threadpool(once.memory.finish, once.scope, key, response.status_code, headers, body)
    return response


def _replay(first: StoredAnswer, seal: Fernet | None) -> Response:
    body = seal.decrypt(first.body) if seal else first.body
    return Response(body, first.status, first.headers | REPLAYED)


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()
