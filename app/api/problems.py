"""Render every error as `application/problem+json` (RFC 9457), whoever raised it."""

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.api.schemas.strict import did_you_mean
from app.errors import FieldError, FootnoteError, InvalidRequest, MethodNotAllowed, NotFound, UnknownField
from app.telemetry import request_id

PROBLEM_JSON = "application/problem+json"

_CHALLENGE = 'Bearer realm="footnote"'
_QUOTED = re.compile(r"'([^']*)'")
_SUBJECT = re.compile(r"^\w+ should ")
_NO_OBJECT = frozenset({"model_type", "model_attributes_type", "dict_type"})
_PREFIXED = frozenset({"query", "header", "path"})


def install(app: FastAPI) -> None:
    """Make the application answer with problems only."""
    app.add_exception_handler(FootnoteError, _footnote_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)


def problem_response(error: FootnoteError, scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer for an error of ours."""
    return raw_problem_response(error.problem(), scope, headers)


def raw_problem_response(
    problem: Mapping[str, Any], scope: Scope, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for a problem object, such as a failed job keeps it."""
    body = dict(problem) | {"instance": scope["path"], "request_id": request_id.get()}
    # The access log tells it.
    scope.setdefault("state", {})["problem_code"] = body.get("code")
    status = int(body["status"])
    sent = dict(headers or {})
    if status == HTTPStatus.UNAUTHORIZED:
        sent.setdefault("WWW-Authenticate", _CHALLENGE)
    retry_after = body.get("retry_after")
    if isinstance(retry_after, (int, float)):
        sent.setdefault("Retry-After", str(max(1, round(retry_after))))
    content = json.dumps(body, ensure_ascii=False, allow_nan=False, default=str).encode("utf-8", "replace")
    return Response(content, status, sent, media_type=PROBLEM_JSON)


def validation_problem(errors: Sequence[Mapping[str, Any]], body: Any, prefix: str = "") -> InvalidRequest:
    """Turn pydantic's errors into ours; `prefix` is the pointer to where `body` stands in the request."""
    fields: dict[str, FieldError] = {}
    for error in errors:
        for field in _field_errors(error, body, prefix):
            fields.setdefault(field.pointer, field)
    found = sorted(fields.values(), key=lambda field: field.code != "unknown_field")
    kind = UnknownField if found[0].code == "unknown_field" else InvalidRequest
    where = found[0].pointer or "the body"
    detail = found[0].detail if kind is UnknownField else f"{where}: {found[0].detail}"
    return kind(detail, errors=found)


def escape_pointer(name: str) -> str:
    """Return a name as a JSON pointer's part (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


async def _footnote_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, FootnoteError)  # noqa: S101 - registered for this class
    return problem_response(error, request.scope)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    return problem_response(validation_problem(error.errors(), error.body), request.scope)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    if error.status_code == HTTPStatus.NOT_FOUND:
        missing = NotFound("there is no such path", hint="GET /openapi.json lists every operation")
        return problem_response(missing, request.scope)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods_of(request))
        refused = MethodNotAllowed(f"{request.method} is not allowed here; allowed: {allowed}")
        return problem_response(refused, request.scope, {"Allow": allowed})
    return problem_response(InvalidRequest("the request cannot be read"), request.scope, error.headers)


def _methods_of(request: Request) -> list[str]:
    """Return the methods of every operation with this path; the framework names those of the first one only."""
    methods: set[str] = set()
    for template, operations in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), get_route_path(request.scope)):
            methods.update(name.upper() for name in operations)
    return sorted(methods)


def _field_errors(error: Mapping[str, Any], body: Any, prefix: str) -> list[FieldError]:
    location = list(error["loc"])
    kind = str(error["type"])
    if location and location[0] in _PREFIXED:
        pointer = f"{location[0]}:{location[1]}" if len(location) > 1 else f"{location[0]}:"
    else:
        pointer = prefix + _pointer(location[1:] if location[:1] == ["body"] else location, kind, body)
    context = error.get("ctx", {})
    if kind == "unknown_names":
        return [
            FieldError(f"{pointer}/{escape_pointer(name)}", "unknown_field", detail)
            for name, detail in context["names"].items()
        ]
    if kind in ("literal_error", "enum"):
        known = _QUOTED.findall(str(context["expected"]))
        return [FieldError(pointer, "unknown_field", _unknown_value(error.get("input"), known))]
    if kind == "missing":
        return [FieldError(pointer, "missing", "is required" if pointer else "a JSON body is required")]
    if kind in _NO_OBJECT:
        return [FieldError(pointer, "object_type", "must be a JSON object")]
    if "member" in context:
        pointer = f"{pointer}/{context['member']}"
    return [FieldError(pointer, kind, _sentence(str(error["msg"])))]


def _pointer(location: Sequence[Any], kind: str, body: Any) -> str:
    """Follow pydantic's location through the body, which leaves out the names of union branches."""
    parts: list[str] = []
    for i, part in enumerate(location):
        is_member = isinstance(body, dict) and isinstance(part, str) and part in body
        is_item = isinstance(body, list) and isinstance(part, int) and part < len(body)
        if is_member or is_item:
            parts.append(str(part))
            body = body[part]
        elif kind == "missing" and i == len(location) - 1:
            parts.append(str(part))
    return "".join(f"/{escape_pointer(part)}" for part in parts)


def _unknown_value(value: Any, known: Sequence[str]) -> str:
    allowed = " or ".join(f"`{name}`" for name in known)
    if not isinstance(value, str):
        return f"must be {allowed}"
    return f"`{value[:100]}` is not known; allowed is {allowed}{did_you_mean(value, known)}"


def _sentence(message: str) -> str:
    plain = message.removeprefix("Value error, ").replace(" after validation", "")
    plain = _SUBJECT.sub("must ", plain)
    return plain[:1].lower() + plain[1:]
