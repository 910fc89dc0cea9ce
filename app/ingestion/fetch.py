"""Fetch what a URL names into a file: guarded, polite, within limits, and not again what has not changed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.errors import FetchFailed, PayloadTooLarge, UnsupportedMediaType
from app.ingestion.attachment_names import told_filename, without_unsafe
from app.ingestion.guarded_http import Answer, GuardedHttp
from app.ingestion.guarded_network import Deadline
from app.ingestion.robots import Robots

NEVER_TEXT = frozenset({"audio", "video", "font", "model"})
OCTET_STREAM = "application/octet-stream"
LONGEST_HEADER = 1000

_GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server said of a version, to ask whether there is a newer one."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """Return what makes a request conditional."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came: `url` is where it was after redirects; nothing was written where it `is_unchanged`."""

    url: str
    is_unchanged: bool
    media_type: str | None
    filename: str | None
    validators: Validators


class Fetcher:
    """Fetch documents; thread-safe."""

    def __init__(self, http: GuardedHttp, *, most_bytes: int, timeout_seconds: float) -> None:
        self._http = http
        self._robots = Robots(http)
        self._most_bytes = most_bytes
        self._timeout_seconds = timeout_seconds

    def checked(self, url: str, pointer: str = "/url") -> str:
        """Return the URL in its normal form, or raise `UrlBlocked` for one that is refused without a look-up."""
        return self._http.checked(url, pointer)

    def fetch(self, url: str, target: Path, known: Validators | None, advance: Callable[[int], None]) -> Fetched:
        """Write what the URL names into `target`; `advance` hears how many bytes have come.

        Raises `UrlBlocked`, `FetchFailed`, `PayloadTooLarge`, `UnsupportedMediaType`.
        """
        deadline = Deadline(self._timeout_seconds)
        asked = {} if known is None else known.headers()
        with self._http.follow(url, deadline, asked, lambda each: self._robots.require(each, deadline)) as (at, answer):
            is_unchanged = bool(asked) and answer.status == HTTPStatus.NOT_MODIFIED
            if not is_unchanged:
                if answer.status != HTTPStatus.OK:
                    raise _failure(at, answer)
                _refuse_type(answer.headers.get("content-type", ""))
                self._write(answer, target, advance)
            return Fetched(
                url=at,
                is_unchanged=is_unchanged,
                media_type=_media_type(answer.headers.get("content-type", "")),
                filename=_filename(at, answer.headers.get("content-disposition")),
                validators=Validators(_kept(answer, "etag"), _kept(answer, "last-modified")),
            )

    def _write(self, answer: Answer, target: Path, advance: Callable[[int], None]) -> None:
        declared = answer.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self._most_bytes:
            raise self._too_large()
        written = 0
        with target.open("wb") as file:
            for piece in answer.body:
                written += len(piece)
                if written > self._most_bytes:
                    raise self._too_large()
                file.write(piece)
                advance(written)

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"what the URL names is larger than {self._most_bytes} bytes (FOOTNOTE_MAX_UPLOAD_BYTES)",
            hint="fetch a smaller file, or raise the limit",
        )


def _failure(url: str, answer: Answer) -> FetchFailed:
    detail = f"{url[:200]} was answered with {answer.status}"
    if answer.status in _GONE:
        hint = "check the URL; the document that came from it stays until it is deleted"
        return FetchFailed(detail, code="url_not_found", hint=hint, extra={"http_status": answer.status})
    return FetchFailed(
        detail,
        hint="open the URL without being signed in: it must answer 200",
        retry_after=answer.retry_after(time.time()),
        extra={"http_status": answer.status},
    )


def _refuse_type(content_type: str) -> None:
    if content_type.partition("/")[0].strip().lower() in NEVER_TEXT:
        raise UnsupportedMediaType(
            f"the URL names {content_type[:100]}, which holds no text", hint="fetch a document or a page"
        )


def _media_type(content_type: str) -> str | None:
    declared = content_type.strip()
    return None if not declared or declared.lower() == OCTET_STREAM or len(declared) > LONGEST_HEADER else declared


def _filename(url: str, disposition: str | None) -> str | None:
    named = None
    if disposition:
        message = Message()
        message["Content-Disposition"] = disposition[:LONGEST_HEADER]
        named = told_filename(message)
    name = named or unquote(urlsplit(url).path)
    return without_unsafe(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])[-255:] or None


def _kept(answer: Answer, name: str) -> str | None:
    """Return a header to send back later, if it is one that can be."""
    value = answer.headers.get(name, "").strip()
    return value if value.isprintable() and value.isascii() and 0 < len(value) <= LONGEST_HEADER else None
