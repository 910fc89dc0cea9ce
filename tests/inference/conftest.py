from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.errors import EmbeddingUnavailable
from app.inference.remote import RemoteServer


class Clock:
    """Time that passes only in `sleep`; `pauses` is what was slept."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def remote(clock: Clock, model_server: Any) -> Iterator[Callable[..., RemoteServer]]:
    """Make a `RemoteServer` of the scripted model server, on the test's own clock and without jitter."""
    made = []

    def make(**options: Any) -> RemoteServer:
        defaults: dict[str, Any] = {
            "base_url": model_server.url,
            "api_key": "key-of-ours",
            "timeout_seconds": 10,
            "unavailable": EmbeddingUnavailable,
            "sleep": clock.sleep,
            "monotonic": clock,
            "wall_clock": clock,
            "jitter": lambda: 0.0,
        }
        made.append(RemoteServer("embedding server", **(defaults | options)))
        return made[-1]

    yield make
    for server in made:
        server.close()
