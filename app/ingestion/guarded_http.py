"""Send HTTP requests on behalf of a caller, to where callers may send one. What fetches and webhooks go through.

No proxy, no cookie and no credential of this process is ever used, and each redirect is a request that is checked anew.
"""

import re
import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property

import httpcore2
import httpx2

from app.errors import FetchFailed, FieldError, UrlBlocked
from app.ingestion.guarded_network import (
    Deadline,
    GuardedNetwork,
    Resolve,
    look_up,
    refuse_unreachable,
    written_addresses,
)
from app.settings import Network

SCHEMES = ("http", "https")
PRIVILEGED_PORTS = (80, 443)
FIRST_UNPRIVILEGED_PORT = 1024
LONGEST_URL = 4096
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS = 5
PIECE = 1 << 18

_CHECK_OR_WAIT = "check the URL, or try again later"
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|[0-9a-f:.]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; `body` yields it once, decoded and in small pieces, while the connection is open."""

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes] = field(repr=False)

    def retry_after(self, now: float) -> float | None:
        """Return the seconds that the server asks to wait, if it does and is understood."""
        header = self.headers.get("retry-after", "").strip()
        if header.isascii() and header.isdigit() and len(header) < 9:
            return float(header)
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - now)
        except (ValueError, OverflowError):
            return None


class _UnaskedCoding(Exception):
    """The server encoded its body in a way that no request of ours accepts."""


class GuardedHttp:
    """Check URLs and send requests; thread-safe. `resolve` and `ssl_context` are the system's where none is given."""

    def __init__(
        self,
        allowed_networks: Sequence[Network] = (),
        *,
        user_agent: str = "Footnote",
        resolve: Resolve = look_up,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.user_agent = user_agent
        self._allowed = tuple(allowed_networks)
        self._resolve = resolve
        self._given_ssl_context = ssl_context

    def checked(self, url: str, pointer: str = "/url") -> str:
        """Return the URL in its normal form, without its fragment, or raise `UrlBlocked`. No name is looked up."""
        return str(self._parsed(url, pointer))

    @contextmanager
    def follow(
        self, url: str, deadline: Deadline, headers: Mapping[str, str], before_each: Callable[[str], None]
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the first answer to a GET that is no redirect, and the URL it came from.

        `before_each` may refuse each URL before it is asked. Raises `UrlBlocked` and `FetchFailed`.
        """
        url = self.checked(url)
        for _ in range(1 + MOST_REDIRECTS):
            before_each(url)
            with self.send("GET", url, deadline, headers=headers) as answer:
                location = answer.headers.get("location")
                if answer.status not in REDIRECTS or location is None:
                    yield url, answer
                    return
            url = self._redirected(url, location)
        raise FetchFailed(f"{url[:200]} redirects more than {MOST_REDIRECTS} times", hint="give the URL it leads to")

    def _redirected(self, url: str, location: str) -> str:
        try:
            target = httpx2.URL(url).join(location)
        except (httpx2.InvalidURL, UnicodeError):
            raise _blocked(f"{url[:200]} redirects to what is no URL") from None
        if httpx2.URL(url).scheme == "https" and target.scheme == "http":
            raise _blocked(f"{url[:200]} redirects from https to http")
        return self.checked(str(target))

    @contextmanager
    def send(
        self,
        method: str,
        url: str,
        deadline: Deadline,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Iterator[Answer]:
        """Yield the answer, whatever its status is.

        Raises `UrlBlocked`, and `FetchFailed` where no answer came, it broke off, or the deadline passed.
        """
        target = self._parsed(url)
        sent = {
            "Host": target.netloc.decode("ascii"),
            "User-Agent": self.user_agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **(headers or {}),
        }
        network = GuardedNetwork(self._resolve, self._allowed, deadline)
        is_answering = False
        try:
            with (
                httpcore2.ConnectionPool(ssl_context=self._ssl_context, network_backend=network) as pool,
                pool.stream(method, _for_pool(target), headers=list(sent.items()), content=content) as raw,
            ):
                answered, is_answering = httpx2.Headers(raw.headers), True
                yield Answer(raw.status, answered, _decoded(answered.get("content-encoding", ""), raw.iter_stream()))
        except httpcore2.TimeoutException:
            detail = f"{target.host} did not answer in full within {deadline.seconds:g} s"
            raise FetchFailed(detail, code="fetch_timeout", hint="try again later") from None
        except httpcore2.NetworkError:
            raise FetchFailed(f"{target.host} cannot be reached", hint=_CHECK_OR_WAIT) from None
        except _UnaskedCoding as error:
            detail = f"{target.host} answered in the coding {str(error)[:50]!r}, which was not asked for"
            raise FetchFailed(detail, hint="have it answer plainly or with gzip") from None
        except zlib.error:
            detail = f"{target.host} answered a gzip body that is damaged or ends too early"
            raise FetchFailed(detail, hint="try again later") from None
        except httpcore2.RemoteProtocolError:
            what = "broke its answer off before its end" if is_answering else "answered what is no HTTP"
            raise FetchFailed(f"{target.host} {what}", hint=_CHECK_OR_WAIT) from None
        except httpcore2.ProtocolError:
            raise FetchFailed(f"{target.host} cannot be asked for this URL", hint=_CHECK_OR_WAIT) from None

    def _parsed(self, url: str, pointer: str = "/url") -> httpx2.URL:
        if len(url) > LONGEST_URL:
            raise _blocked(f"the URL is longer than {LONGEST_URL} characters", pointer)
        try:
            parsed = httpx2.URL(url.strip()).copy_with(fragment=None)
        except (httpx2.InvalidURL, UnicodeError):
            raise _blocked(f"{url[:200]!r} is no URL", pointer) from None
        host = parsed.raw_host.decode("ascii")
        if parsed.scheme not in SCHEMES:
            raise _blocked(f"{parsed.scheme[:20]!r} is not called; only http and https are", pointer)
        if not _HOST.fullmatch(host):
            raise _blocked(f"{parsed.host[:200]!r} is no host", pointer)
        if parsed.userinfo:
            raise _blocked("the URL holds a user's name or password", pointer)
        port = parsed.port
        if port is not None and port not in PRIVILEGED_PORTS and not FIRST_UNPRIVILEGED_PORT <= port < 65536:
            raise _blocked(f"the port {port} is not called; 80, 443 and those from 1024 on are", pointer)
        refuse_unreachable(host, written_addresses(host), self._allowed, pointer)
        return parsed

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        return self._given_ssl_context or httpcore2.default_ssl_context()


def _for_pool(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def _decoded(coding: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a body's bytes; raise `zlib.error` for a damaged one and `_UnaskedCoding`."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        yield from pieces
    elif coding in ("gzip", "x-gzip"):
        yield from _gunzipped(pieces)
    else:
        raise _UnaskedCoding(coding)


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Inflate in bounded pieces, so that a bomb is found out before it is large; members may follow each other."""
    decoder = None
    for piece in pieces:
        rest, is_full = piece, False
        while rest or is_full:
            if decoder is None:
                # Zeros may pad what is between and after the members.
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            inflated = decoder.decompress(rest, PIECE)
            yield inflated
            is_full = len(inflated) == PIECE and not decoder.eof
            rest, decoder = (decoder.unused_data, None) if decoder.eof else (decoder.unconsumed_tail, decoder)
    if decoder is not None:
        raise zlib.error("the body ends too early")


def _blocked(detail: str, pointer: str = "/url") -> UrlBlocked:
    return UrlBlocked(detail, errors=[FieldError(pointer, UrlBlocked.code, detail)])
