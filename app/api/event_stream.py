"""Answer with server-sent events: named JSON events with ids, a comment while there is nothing to say, a sound end.

The answer ends at once when its client leaves, and when the service stops, which would else wait for it.
"""

import asyncio
import json
import logging
import signal
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastapi import Response
from starlette.types import Receive, Scope, Send

from app.api.declared import Responses
from app.api.schemas.strict import Reply
from app.errors import FootnoteError
from app.telemetry import request_id

log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
_HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    # nginx would hold events back until its buffer is full.
    "X-Accel-Buffering": "no",
}
_HEARTBEAT = b": still here\n\n"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `id` and `name` are single lines, `data` is sent as JSON."""

    data: Reply | Mapping[str, Any]
    name: str
    id: str | None = None

    def encoded(self) -> bytes:
        """Return the event as it is sent; JSON has no line ends of its own."""
        data = self.data.model_dump_json() if isinstance(self.data, Reply) else json.dumps(self.data, default=str)
        lines = [] if self.id is None else [f"id: {self.id}"]
        return "\n".join([*lines, f"event: {self.name}", f"data: {data}", "", ""]).encode("utf-8", "replace")


class EventStream(Response):
    """Send events as they come; one that fails ends with an `error` event that holds the problem object.

    The generator is closed as soon as the client leaves or the service stops, wherever it waits.
    """

    media_type = EVENT_STREAM

    def __init__(self, events: AsyncGenerator[Event, None], heartbeat_seconds: float) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._heartbeat_seconds = heartbeat_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client to the end."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        ready, told = anyio.create_memory_object_stream[bytes]()
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
            group.start_soon(self._produce, ready)
            # Ends what is sent, not the answer: the last, empty block closes it in order.
            with anyio.CancelScope() as sending:
                group.start_soon(_cancel_when_stopping, scope, sending)
                await self._send(told, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    async def _send(self, told: MemoryObjectReceiveStream[bytes], send: Send) -> None:
        with told:
            while True:
                block = _HEARTBEAT
                with anyio.move_on_after(self._heartbeat_seconds):
                    try:
                        block = await told.receive()
                    except anyio.EndOfStream:
                        return
                await send({"type": "http.response.body", "body": block, "more_body": True})

    async def _produce(self, ready: MemoryObjectSendStream[bytes]) -> None:
        with ready:
            async with aclosing(self._events):
                try:
                    async for event in self._events:
                        await ready.send(event.encoded())
                except FootnoteError as error:
                    await ready.send(_failure(error))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                except Exception:
                    log.exception("a stream met a bug")
                    bug = FootnoteError("an unexpected error ended this stream", hint="report it with the request_id")
                    await ready.send(_failure(bug))


class Stopping:
    """Know that the process was asked to stop, from the signal on: the server ends its lifespan after all answers."""

    def __init__(self) -> None:
        self._is_told = False
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    async def wait(self) -> None:
        """Return when the process is to stop."""
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(waiter)
        try:
            if not self._is_told:
                await waiter[1].wait()
        finally:
            self._waiting.discard(waiter)

    def tell(self) -> None:
        """End every stream of this process; from any thread or signal handler."""
        self._is_told = True
        for loop, event in list(self._waiting):
            loop.call_soon_threadsafe(event.set)

    @contextmanager
    def told_by_signals(self) -> Iterator["Stopping"]:
        """Hear SIGTERM and SIGINT before the server does, as long as the block runs."""
        # Signals belong to the main thread, which tests that serve from another one leave alone.
        heard = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.getsignal(number) for number in heard}

        def hear(number: int, frame: FrameType | None) -> None:
            self.tell()
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)
            elif handler is signal.SIG_DFL:
                signal.signal(number, handler)
                signal.raise_signal(number)

        for number in heard:
            signal.signal(number, hear)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def stream_of(description: str, model: type[Reply]) -> Responses:
    """Return the declaration of a stream whose events' data is a model that some other operation answers too."""
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{model.__name__}"},
    }
    event = {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": data},
    }
    return {200: {"description": description, "content": {EVENT_STREAM: {"itemSchema": event}}}}


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _cancel_when_stopping(scope: Scope, sending: anyio.CancelScope) -> None:
    stopping: Stopping = scope["app"].state.stopping
    await stopping.wait()
    sending.cancel()


def _failure(error: FootnoteError) -> bytes:
    return Event(error.problem() | {"request_id": request_id.get()}, "error").encoded()
