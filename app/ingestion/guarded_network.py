"""Open connections to checked addresses only, all within one deadline: the network under `guarded_http`.

The name is looked up once, every answer is checked, and the connection goes to an address that was checked, so that a
name which answers otherwise the next time gains nothing. Certificates are still verified against the name.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import httpcore2

from app.errors import FieldError, UrlBlocked
from app.ingestion.addresses import may_be_reached
from app.settings import Network

CONNECT_SECONDS = 10.0
READ_SECONDS = 15.0
"""Longest silence of a server; that it says a little now and then is bounded by the deadline."""

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Return every address of a host name; raise `OSError` where it has none."""


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses that the system's resolver gives, forms like `0x7f.1` and `2130706433` included."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def written_addresses(host: str) -> list[str]:
    """Return the addresses that a host is by itself, without a look-up: none for a name."""
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [str(answer[4][0]) for answer in answers]


def refuse_unreachable(host: str, addresses: Iterable[str], allowed: Sequence[Network], pointer: str = "/url") -> None:
    """Raise `UrlBlocked` if one address leads inside; it tells the caller nothing of the addresses behind a name."""
    if not all(may_be_reached(address, allowed) for address in addresses):
        raise _unreachable(host, pointer)


def _unreachable(host: str, pointer: str = "/url") -> UrlBlocked:
    """Return what is raised for a name without an address too, so that nobody learns which names exist inside."""
    detail = f"{host[:253]} leads to no address on the public Internet, or to another one too"
    return UrlBlocked(
        detail,
        hint="check the name; FOOTNOTE_FETCH_ALLOWED_NETWORKS names networks of your own that may be reached",
        errors=[FieldError(pointer, UrlBlocked.code, detail)],
    )


class Deadline:
    """A moment after which nothing is waited for any more."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self, longest: float) -> float:
        """Return the seconds that one step may take; raise `httpcore2.ReadTimeout` if none are left."""
        left = min(longest, self._end - self._monotonic())
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline has passed")
        return left


class GuardedNetwork(httpcore2.NetworkBackend):
    """Connect within a deadline to addresses that may be reached."""

    def __init__(self, resolve: Resolve, allowed: Sequence[Network], deadline: Deadline) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._deadline = deadline
        self._network = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline stands for it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Return a connection to the first of the host's addresses that takes one; raise `UrlBlocked`."""
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError):
            addresses = ()
        if not addresses:
            raise _unreachable(host)
        refuse_unreachable(host, addresses, self._allowed)
        failure: Exception = httpcore2.ConnectError("no address takes a connection")
        for address in addresses:
            try:
                stream = self._network.connect_tcp(
                    address, port, self._deadline.left(CONNECT_SECONDS), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _HastyStream(stream, self._deadline)
        raise failure


class _HastyStream(httpcore2.NetworkStream):
    """A connection on which nothing outlasts the deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, self._deadline.left(READ_SECONDS))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, self._deadline.left(READ_SECONDS))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(CONNECT_SECONDS))
        return _HastyStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
