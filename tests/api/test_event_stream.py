"""The writer of event streams, driven as a server drives it."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from app.api.event_stream import Event, EventStream, Stopping
from app.errors import LanguageModelUnavailable

BOUND_SECONDS = 5


class Client:
    """One client of a stream; it leaves when `leave` is set."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.stopping = Stopping()

    async def receive(self) -> dict[str, Any]:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.messages.put(message)

    async def get(self, stream: EventStream) -> None:
        app = FastAPI()
        app.state.stopping = self.stopping
        await stream({"type": "http", "app": app}, self.receive, self.send)

    async def body(self) -> bytes:
        return (await self.messages.get()).get("body", b"")


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), BOUND_SECONDS))


async def after(events: list[Event], then: asyncio.Event, closed: asyncio.Event) -> AsyncGenerator[Event, None]:
    try:
        for event in events:
            yield event
        await then.wait()
    finally:
        closed.set()


def test_events_are_sent_in_order_and_the_answer_ends_with_them() -> None:
    async def scenario() -> None:
        async def events() -> AsyncIterator[Event]:
            yield Event({"n": 1}, "job", "7")
            yield Event({"n": "a\nb\u2028"}, "done")

        client = Client()
        await client.get(EventStream(events(), 15))  # type: ignore[arg-type]
        start = await client.messages.get()
        headers = dict(start["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert headers[b"cache-control"] == b"no-cache, no-transform"
        assert headers[b"x-accel-buffering"] == b"no"
        assert b"content-length" not in headers
        assert await client.body() == b'id: 7\nevent: job\ndata: {"n": 1}\n\n'
        assert await client.body() == b'event: done\ndata: {"n": "a\\nb\\u2028"}\n\n'
        assert await client.messages.get() == {"type": "http.response.body", "body": b"", "more_body": False}

    run(scenario)


def test_silence_is_filled_with_comments() -> None:
    async def scenario() -> None:
        client, then = Client(), asyncio.Event()
        serving = asyncio.create_task(client.get(EventStream(after([], then, asyncio.Event()), 0.01)))
        await client.messages.get()
        for _ in range(3):
            assert (await client.body()).startswith(b":")
        then.set()
        await serving

    run(scenario)


def test_a_client_that_leaves_frees_the_source_at_once() -> None:
    async def scenario() -> None:
        client, closed = Client(), asyncio.Event()
        stream = EventStream(after([Event({}, "a")], asyncio.Event(), closed), 15)
        serving = asyncio.create_task(client.get(stream))
        await client.messages.get()
        await client.body()
        client.leave.set()
        await closed.wait()
        await serving

    run(scenario)


def test_a_service_that_stops_ends_the_answer_in_order() -> None:
    async def scenario() -> None:
        client, closed = Client(), asyncio.Event()
        serving = asyncio.create_task(client.get(EventStream(after([], asyncio.Event(), closed), 15)))
        await client.messages.get()
        client.stopping.tell()
        assert await client.messages.get() == {"type": "http.response.body", "body": b"", "more_body": False}
        await serving
        assert closed.is_set()

    run(scenario)


@pytest.mark.parametrize(
    ("error", "code"),
    [(LanguageModelUnavailable("it is off"), "language_model_unavailable"), (KeyError("secret"), "internal_error")],
)
def test_a_failure_is_an_error_event_that_holds_the_problem(error: Exception, code: str) -> None:
    async def scenario() -> None:
        async def events() -> AsyncIterator[Event]:
            yield Event({}, "a")
            raise error

        client = Client()
        await client.get(EventStream(events(), 15))  # type: ignore[arg-type]
        await client.messages.get()
        await client.body()
        name, data = (await client.body()).decode().splitlines()[:2]
        assert name == "event: error"
        assert json.loads(data.removeprefix("data: "))["code"] == code
        assert "secret" not in data

    run(scenario)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_any_data_is_one_line_and_comes_out_as_it_went_in(data: dict[str, Any]) -> None:
    encoded = Event(data, "x", "1").encoded().decode()
    assert encoded.endswith("\n\n")
    lines = encoded.removesuffix("\n\n").split("\n")
    assert len(lines) == 3
    assert "\r" not in encoded
    assert json.loads(lines[2].removeprefix("data: ")) == data
