"""Read a body within its limit and parse JSON strictly: Unicode, finite numbers, unique names, bounded depth."""

import json
import math
import re
from collections.abc import AsyncIterator, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.api.problems import escape_pointer
from app.errors import FieldError, InvalidRequest, PayloadTooLarge, UnsupportedMediaType

MAX_DEPTH = 100
INLINE_BYTES = 64_000
"""Bodies above this are parsed in a thread, so that the event loop keeps answering."""

_MIGHT_HOLD_SURROGATES = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_CONTENT = frozenset({"text", "records"})
"""Members of a document that its loader cleans, with a warning, as it does those of a file."""

_MOST_ERRORS = 100


class JSONRequest(Request):
    """A request whose body is JSON by our rules; `limit` is in bytes."""

    def limited_to(self, limit: int) -> "JSONRequest":
        """Set the largest body that is read."""
        self._limit = limit
        return self

    async def body(self) -> bytes:
        """Return the whole body; raise `PayloadTooLarge` as soon as the limit is crossed."""
        if not hasattr(self, "_body"):
            blocks = [block async for block in limited_stream(self, self._limit, "FOOTNOTE_MAX_JSON_BYTES")]
            self._body = b"".join(blocks)
        return self._body

    async def json(self) -> Any:
        """Return the parsed body."""
        if not hasattr(self, "_json"):
            body = await self.body()
            parse = partial(parse_json, body, may_hold_documents=True)
            self._json = parse() if len(body) <= INLINE_BYTES else await run_in_threadpool(parse)
        return self._json

    def require_json(self) -> None:
        """Raise `UnsupportedMediaType` for a body that does not say it is JSON."""
        declared = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if declared != "application/json" and not (declared.startswith("application/") and declared.endswith("+json")):
            raise UnsupportedMediaType(
                f"the body must be application/json, not {declared or 'undeclared'}",
                hint="send the header Content-Type: application/json",
            )


async def limited_stream(request: Request, limit: int, setting: str) -> AsyncIterator[bytes]:
    """Yield the body's blocks; raise `PayloadTooLarge` at the announced or the first byte above `limit`."""
    announced = request.headers.get("content-length", "")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedMediaType(
            f"a body with Content-Encoding {encoding[:40]!r} is not read", hint="send it as it is"
        )
    received = int(announced) if announced.isascii() and announced.isdigit() else 0
    if received <= limit:
        received = 0
        async for block in request.stream():
            received += len(block)
            if received > limit:
                break
            yield block
    if received > limit:
        raise PayloadTooLarge(
            f"the body is above the limit of {limit} bytes ({setting})", hint=f"send less, or raise {setting}"
        )


def parse_json(body: bytes, pointer: str = "", *, may_hold_documents: bool = False) -> Any:
    """Return the value; raise `InvalidRequest` (`invalid_json`) that says where it is wrong.

    `pointer` is where the JSON stands in the request. A body that may hold documents is not looked at where their
    content stands, nor inside a batch, each document of which is for `refuse_lone_surrogates`.
    """
    try:
        value = _parse(body)
    except _Unsound as error:
        detail = f"the JSON cannot be read: {error}"
        raise InvalidRequest(
            detail, code="invalid_json", errors=[FieldError(pointer, "invalid_json", detail)]
        ) from None
    if _MIGHT_HOLD_SURROGATES.search(body):
        refuse_lone_surrogates(value, pointer, unread=_CONTENT | {"documents"} if may_hold_documents else frozenset())
    return value


def refuse_lone_surrogates(value: Any, pointer: str = "", *, unread: AbstractSet[str] = _CONTENT) -> None:
    """Raise `InvalidRequest` that names the strings and names of a JSON value which are no Unicode text.

    Nothing could store, search or answer them. The value's own members of the names `unread` are not looked at.
    """
    read = {name: member for name, member in value.items() if name not in unread} if isinstance(value, dict) else value
    places = list(islice(_lone_surrogates(read, pointer), _MOST_ERRORS))
    if places:
        detail = "holds a lone surrogate, one half of a character; send it whole or leave it out"
        errors = [FieldError(place, "lone_surrogate", detail) for place in places]
        raise InvalidRequest(f"{places[0] or 'the body'} {detail}", errors=errors)


def is_unicode(text: str) -> bool:
    """Return whether the text can be stored, searched and answered."""
    return _LONE_SURROGATE.search(text) is None


def _lone_surrogates(value: Any, pointer: str) -> Iterator[str]:
    """Yield where strings stand that hold one, and where members whose names do."""
    if isinstance(value, str):
        if not is_unicode(value):
            yield pointer
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _lone_surrogates(member, f"{pointer}/{index}")
    elif isinstance(value, dict):
        for name, member in value.items():
            place = f"{pointer}/{escape_pointer(_LONE_SURROGATE.sub(_REPLACEMENT, name))}"
            if is_unicode(name):
                yield from _lone_surrogates(member, place)
            else:
                yield place


class _Unsound(Exception):
    """Say why a JSON text cannot be read."""


def _parse(body: bytes) -> Any:
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_unique_names,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise _Unsound(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _Unsound(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _Unsound(f"the nesting is above {MAX_DEPTH} levels") from None
    except ValueError:
        raise _Unsound("a whole number has too many digits") from None
    _check_depth(value)
    return value


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _Unsound(f"the name {twice!r} stands twice in one object")
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _Unsound(f"the number {digits[:40]} is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _Unsound(f"{name} is not JSON")


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        if depth == MAX_DEPTH:
            raise _Unsound(f"the nesting is above {MAX_DEPTH} levels")
        depth += 1
        level = [
            member
            for container in level
            if isinstance(container, (dict, list))
            for member in (container.values() if isinstance(container, dict) else container)
            if isinstance(member, (dict, list))
        ]
