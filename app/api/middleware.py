"""What surrounds every request: its id, its log line, security headers, and the end of errors that nobody expected."""

import logging
import re
import secrets
import time
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem_response
from app.errors import FootnoteError, StorageFull
from app.telemetry import counters, request_id

log = logging.getLogger("footnote.access")

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_CLIENT_LEFT = 499
_PROBES = frozenset({"/livez", "/readyz"})
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(slots=True)
class _Exchange:
    """One request on its way."""

    id: str
    began: float
    status: int = 0


class RequestContext:
    """Give each request an id, render what escapes from inside, and write one access-log line.

    The line holds the route's template, never the path, the query, a key or a body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        exchange = _Exchange(
            id=given if _SANE_REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(10)}",
            began=time.perf_counter(),
        )
        token = request_id.set(exchange.id)
        try:
            await self._serve(scope, receive, send, exchange)
        finally:
            _write_line(scope, exchange)
            request_id.reset(token)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, exchange: _Exchange) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers["X-Request-ID"] = exchange.id
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            exchange.status = exchange.status or _CLIENT_LEFT
        except Exception as error:
            if exchange.status:
                raise
            await problem_response(_ours(error), scope)(scope, receive, send_with_headers)


def _ours(error: Exception) -> FootnoteError:
    """Return the error that the caller is told; what nobody expected is logged with its trace."""
    if isinstance(error, FootnoteError):
        return error
    full = StorageFull.told_by(error)
    if full is not None:
        return full
    log.exception("a request met a bug", exc_info=error)
    return FootnoteError("an unexpected error ended this request", hint="report it with the request_id")


def _write_line(scope: Scope, exchange: _Exchange) -> None:
    template = getattr(scope.get("route"), "path", "-")
    state = scope.get("state", {})
    principal = state.get("principal")
    log.log(
        logging.DEBUG if template in _PROBES and exchange.status < HTTPStatus.BAD_REQUEST else logging.INFO,
        "request",
        extra={
            "method": scope["method"],
            "route": template,
            "status": exchange.status,
            "ms": round((time.perf_counter() - exchange.began) * 1000, 2),
            "key": (principal.key_id or "admin") if principal else None,
            "code": state.get("problem_code"),
        },
    )
    counters.add(f"http_responses_{exchange.status // 100}xx")
