"""A real server on a free port, spoken to over HTTP only."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ADMIN_KEY = "journeys-admin-key-0123456789"
START_SECONDS = 60.0
FOOTNOTE = Path(sys.executable).with_name("footnote")


class Server:
    """One `footnote serve` on its own data folder, which outlives it."""

    def __init__(self, data: Path, *, workers: int = 1, **settings: str) -> None:
        self.data = data
        self._workers = workers
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.log = data.parent / f"{data.name}.log"
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> "Server":
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
        environment |= {
            "FOOTNOTE_DATA": str(self.data),
            "FOOTNOTE_ADMIN_KEY": ADMIN_KEY,
            "FOOTNOTE_EMBEDDER": "hashed",
        } | {f"FOOTNOTE_{name.upper()}": value for name, value in self._settings.items()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(FOOTNOTE), "serve", "--port", str(port), "--workers", str(self._workers)],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        pytest.fail(f"the server did not become ready:\n{self.log.read_text(errors='replace')[-4000:]}")

    def kill(self) -> None:
        """End every process of the server at once, as a power switch would."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
                self._process = None
            except subprocess.TimeoutExpired:
                self.kill()
                pytest.fail("the server did not stop when asked to")

    def client(self, key: str = ADMIN_KEY, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=options.pop("timeout", 60), **options)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server; every one is ended with the test."""
    servers: list[Server] = []

    def make(name: str = "data", **options: Any) -> Server:
        server = Server(tmp_path / name, **options)
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.kill()


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    """Return a server with hashed vectors: no model, no network."""
    return make_server()
