"""Start the real server for a benchmark, on a data folder of its own."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ADMIN_KEY = "benchmark-admin-key-0123456789"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """A running server: where it is, its process, and how long it took from its start to its first ready answer."""

    url: str
    pid: int
    start_seconds: float

    def client(self, timeout: float = 600) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=timeout)

    def resident_megabytes(self) -> float:
        """Return the resident memory of the server process and its children (Linux)."""
        return sum(_resident(pid) for pid in (self.pid, *_children(self.pid))) / 1e6

    def private_megabytes(self) -> float:
        """Return the memory of those processes that no file backs (Linux)."""
        return sum(_private(pid) for pid in (self.pid, *_children(self.pid))) / 1e6


@contextmanager
def serve(data: Path | None = None, **settings: str) -> Iterator[Served]:
    """Serve until the block ends; `settings` are `FOOTNOTE_*` values by lower-case name."""
    with tempfile.TemporaryDirectory(prefix="footnote-benchmark-") as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
        environment |= {"FOOTNOTE_DATA": str(data or folder), "FOOTNOTE_ADMIN_KEY": ADMIN_KEY}
        environment |= {"FOOTNOTE_MODELS": str(models_folder()), "FOOTNOTE_LOG_LEVEL": "warning"}
        environment |= {f"FOOTNOTE_{name.upper()}": value for name, value in settings.items()}
        port = _free_port()
        command = [str(Path(sys.executable).with_name("footnote")), "serve", "--port", str(port)]
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process)
            yield Served(url, process.pid, time.perf_counter() - begin)
        finally:
            process.terminate()
            process.wait(60)


def models_folder() -> Path:
    """Return where converted models are kept between benchmarks."""
    return Path(os.environ.get("FOOTNOTE_MODELS") or Path(__file__).parent.parent / ".pytest_cache" / "models")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/readyz", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise SystemExit("the server did not become ready")


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _private(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *_children(child)]
    return found
