"""Ask from several clients at once, in process or over HTTP, and sum up how long the answers took."""

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, cycle
from urllib.parse import urlsplit

import numpy as np

_END_OF_HEADERS = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True)
class Latencies:
    """What a number of answers took, in milliseconds, and how many came a second."""

    p50: float
    p95: float
    p99: float
    per_second: float

    @classmethod
    def of(cls, seconds: Sequence[float], wall_seconds: float) -> "Latencies":
        """Sum up."""
        p50, p95, p99 = np.percentile(np.array(seconds) * 1000, [50, 95, 99])
        return cls(float(p50), float(p95), float(p99), len(seconds) / wall_seconds)

    def __str__(self) -> str:
        """Return the four figures as columns."""
        return f"{self.p50:8.2f} {self.p95:8.2f} {self.p99:8.2f} {self.per_second:8.0f}"


COLUMNS = f"{'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'per s':>8}"


def in_process(ask: Callable[[str], object], texts: Sequence[str], clients: int, requests: int) -> Latencies:
    """Ask the texts in turn from so many threads, each of which waits for its answer before it asks again."""
    turn, lock = count(), threading.Lock()

    def client() -> list[float]:
        taken: list[float] = []
        while True:
            with lock:
                place = next(turn)
            if place >= requests:
                return taken
            begin = time.perf_counter()
            ask(texts[place % len(texts)])
            taken.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    if clients == 1:
        seconds = client()
    else:
        with ThreadPoolExecutor(clients) as threads:
            seconds = [
                each for waiting in [threads.submit(client) for _ in range(clients)] for each in waiting.result()
            ]
    return Latencies.of(seconds, time.perf_counter() - begin)


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    began: float = 0.0
    got: bytes = b""


def over_http(
    url: str, bodies: Sequence[object], clients: int, requests: int, headers: dict[str, str], stop: Callable[[], bool]
) -> Latencies:
    """Post the bodies in turn over so many kept connections; ends after `requests` answers, or when `stop` says so.

    One thread serves all connections, and parses no more than it must: the server has the cores. Raises `SystemExit`
    for an answer other than 200.
    """
    parts = urlsplit(url)
    messages = [_message(parts.path, parts.netloc, body, headers) for body in bodies]
    turn, seconds = cycle(messages), []
    with ExitStack() as open_until_the_end:
        selector = open_until_the_end.enter_context(selectors.DefaultSelector())
        connections = [_connected(parts.hostname or "", parts.port or 80) for _ in range(clients)]
        for connection in connections:
            open_until_the_end.callback(connection.socket.close)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        begin = time.perf_counter()
        for connection in connections:
            _send(connection, next(turn))
        while len(seconds) < requests and not stop():
            for key, _ in selector.select(timeout=1):
                if _receive(key.data):
                    seconds.append(time.perf_counter() - key.data.began)
                    _send(key.data, next(turn))
        return Latencies.of(seconds, time.perf_counter() - begin)


def _connected(host: str, port: int) -> _Connection:
    made = socket.create_connection((host, port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _Connection(made)


def _message(path: str, host: str, body: object, headers: dict[str, str]) -> bytes:
    content = json.dumps(body).encode()
    lines = {"Host": host, "Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + content


def _send(connection: _Connection, message: bytes) -> None:
    connection.got, connection.began = b"", time.perf_counter()
    connection.socket.sendall(message)


def _receive(connection: _Connection) -> bool:
    """Take in what came; return whether the answer is whole now."""
    more = connection.socket.recv(1 << 18)
    if not more:
        raise SystemExit("the server closed a connection")
    connection.got += more
    end = connection.got.find(_END_OF_HEADERS)
    if end < 0:
        return False
    if not connection.got.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the server answered {connection.got[:300]!r}")
    head = connection.got[:end].lower()
    length = head[head.index(_LENGTH) + len(_LENGTH) :].partition(b"\r")[0]
    return len(connection.got) >= end + len(_END_OF_HEADERS) + int(length)
