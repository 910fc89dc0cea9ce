"""Structured logs, request ids, counters and stage timers. None may hold a secret or a document's text."""

import json
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class _Formatter(logging.Formatter):
    def __init__(self, style: Literal["json", "text"]) -> None:
        super().__init__()
        self._json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _PLAIN and value is not None}
        if current := request_id.get():
            fields.setdefault("request_id", current)
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        trace = self.formatException(record.exc_info) if record.exc_info else None
        if self._json:
            body: dict[str, Any] = {
                "time": when,
                "level": record.levelname.lower(),
                "event": record.getMessage(),
            }
            body |= fields | ({"trace": trace} if trace else {})
            return json.dumps(body, ensure_ascii=False, default=str)
        line = f"{when} {record.levelname.lower():7} {record.getMessage()}"
        line += "".join(f" {name}={value}" for name, value in fields.items())
        return f"{line}\n{trace}" if trace else line


def configure_logging(level: str, style: Literal["json", "text"]) -> None:
    """Send every log record of the process to standard error, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(style))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx2", "httpcore2", "openai", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class Counters:
    """Count events by name; thread-safe, monotonic, per process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Counter[str] = Counter()

    def add(self, name: str, amount: int = 1) -> None:
        """Add `amount` to the counter called `name`."""
        with self._lock:
            self._values[name] += amount

    def snapshot(self) -> dict[str, int]:
        """Return every counter's present value."""
        with self._lock:
            return dict(self._values)


counters = Counters()
"""Process-wide: `embedding_texts`, `embedding_calls`, `embedding_cache_hits`, `searches`, `asks`, ..."""


class StageTimer:
    """Measure the named stages of one operation, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the stage called `name`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, (time.perf_counter() - begin) * 1000)

    def add(self, name: str, milliseconds: float) -> None:
        """Add a time that was measured elsewhere."""
        self._stages[name] = self._stages.get(name, 0.0) + milliseconds

    def milliseconds(self) -> dict[str, float]:
        """Return each stage's time and the `total` since the timer was made, rounded to a hundredth."""
        total = (time.perf_counter() - self._started) * 1000
        return {name: round(value, 2) for name, value in (*self._stages.items(), ("total", total))}
