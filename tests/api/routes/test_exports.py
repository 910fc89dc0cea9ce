"""What an export holds while it is made and sent, its file and its place, is given back whatever ends it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient

from app.api.routes import transfers
from app.api.routes.transfers import ExportResponse
from app.ingestion.packing import ExportPlaces

SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}


def exported(client: TestClient, name: str) -> None:
    assert client.get(f"/v1/collections/{name}/export").status_code == 200


def test_no_more_exports_than_allowed_are_made_and_sent_at_once(started: Callable[..., TestClient]) -> None:
    client = started(exports=1)
    client.put("/v1/collections/c", json={})
    for _ in range(2):
        exported(client, "c")
    exports: ExportPlaces = client.app.state.services.exports  # type: ignore[attr-defined]
    exports.take()
    refused = client.get("/v1/collections/c/export")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_exports")
    assert int(refused.headers["Retry-After"]) > 0
    exports.leave()
    exported(client, "c")


def test_an_export_that_fails_leaves_its_place(started: Callable[..., TestClient], tmp_path: Path) -> None:
    client = started(exports=1, data=tmp_path / "data")
    client.put("/v1/collections/c", json={})
    (folder,) = (tmp_path / "data" / "collections").glob("col_*")
    (folder / "originals").rename(folder / "away")
    assert client.get("/v1/collections/c/export").status_code == 500
    (folder / "away").rename(folder / "originals")
    exported(client, "c")


@pytest.mark.parametrize("caller", ["leaves", "takes nothing"])
def test_a_caller_who_does_not_take_an_export_keeps_neither_file_nor_place(tmp_path: Path, caller: str) -> None:
    async def send(_message: Any) -> None:
        if caller == "leaves":
            raise OSError
        await asyncio.Event().wait()

    async def receive() -> Any:
        await asyncio.Event().wait()

    exports = ExportPlaces(1)
    exports.take()
    (tmp_path / "file").write_bytes(b"bundle")
    file = (tmp_path / "file").open("rb")
    answer = ExportResponse(file, exports, 0.05, {})
    with pytest.raises(ClientDisconnect) if caller == "leaves" else nullcontext():
        asyncio.run(answer(SCOPE, receive, send))
    assert file.closed
    exports.take()


async def wait_for_ever() -> Any:
    await asyncio.Event().wait()


@pytest.fixture
def held(tmp_path: Path) -> tuple[IO[bytes], ExportPlaces]:
    """A bundle and the place that was taken for it, of one."""
    exports = ExportPlaces(1)
    exports.take()
    (tmp_path / "file").write_bytes(b"bundle")
    return (tmp_path / "file").open("rb"), exports


@pytest.mark.parametrize("times", [1, 2])
def test_an_export_whose_request_is_cancelled_keeps_neither_file_nor_place(
    held: tuple[IO[bytes], ExportPlaces], times: int
) -> None:
    file, exports = held

    async def cancel() -> None:
        sending = asyncio.Event()

        async def send(_message: Any) -> None:
            sending.set()
            await wait_for_ever()

        answering = asyncio.create_task(ExportResponse(file, exports, 60, {})(SCOPE, wait_for_ever, send))
        await sending.wait()
        for _ in range(times):
            answering.cancel()
            await asyncio.sleep(0)
        with suppress(asyncio.CancelledError):
            await answering

    asyncio.run(cancel())
    assert file.closed
    exports.take()


def test_an_export_in_a_group_of_tasks_that_ends_keeps_neither_file_nor_place(
    held: tuple[IO[bytes], ExportPlaces],
) -> None:
    file, exports = held

    async def cancel() -> None:
        async with anyio.create_task_group() as group:

            async def send(_message: Any) -> None:
                group.cancel_scope.cancel()
                await wait_for_ever()

            group.start_soon(ExportResponse(file, exports, 60, {}), SCOPE, wait_for_ever, send)

    asyncio.run(cancel())
    assert file.closed
    exports.take()


def test_an_export_whose_request_is_cancelled_while_it_is_made_keeps_neither_file_nor_place(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = started(exports=1)
    client.put("/v1/collections/c", json={})
    packing, go_on, left = threading.Event(), threading.Event(), threading.Event()
    files: list[IO[bytes]] = []
    export_collection = transfers.export_collection
    exports: ExportPlaces = client.app.state.services.exports  # type: ignore[attr-defined]
    leave = exports.leave

    def leave_and_tell() -> None:
        leave()
        left.set()

    def slowly(*arguments: Any) -> None:
        packing.set()
        assert go_on.wait(30)
        export_collection(*arguments)
        files.append(arguments[-1])

    monkeypatch.setattr(transfers, "export_collection", slowly)
    monkeypatch.setattr(exports, "leave", leave_and_tell)
    key = client.headers["Authorization"].encode()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/collections/c/export",
        "raw_path": b"/v1/collections/c/export",
        "query_string": b"",
        "headers": [(b"authorization", key)],
        "state": {},
    }

    async def cancel() -> None:
        answering = asyncio.create_task(client.app(scope, wait_for_ever, wait_for_ever))  # type: ignore[arg-type]
        assert await asyncio.to_thread(packing.wait, 30)
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
        refused = await asyncio.to_thread(client.get, "/v1/collections/c/export")
        assert refused.status_code == 429, "the bundle is still being made"
        go_on.set()
        assert await asyncio.to_thread(left.wait, 30)
        assert files[0].closed

    asyncio.run(cancel())
    monkeypatch.undo()
    exported(client, "c")
