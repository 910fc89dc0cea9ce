"""Whole collections, out and in: export and import."""

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO, Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from app.api.collection_settings import archived_settings, collection_reply
from app.api.declared import Responses, binary_body, keyed
from app.api.dependencies import (
    CollectionName,
    CurrentPrincipal,
    CurrentServices,
    OwnerAccess,
    check_role,
    visible_collection,
)
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.replies import reply
from app.api.schemas.collections import CollectionReply
from app.api.strict_route import StrictRoute
from app.api.uploads import BLOCK_BYTES, Spool, spool_body
from app.bootstrap import Services
from app.catalog.collections import Collection
from app.catalog.principal import Role
from app.errors import NameTaken
from app.ingestion.packing import ExportPlaces, export_collection
from app.ingestion.unpacking import INFLATION, import_collection

log = logging.getLogger(__name__)

ZIP = "application/zip"

router = APIRouter(prefix="/v1/collections", route_class=StrictRoute, tags=["collections"])

_EXPORTED: Responses = {
    200: {
        "description": "A zip: the database, the originals, and `manifest.json` with the SHA-256 of each",
        "content": {ZIP: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get(
    "/{collection}/export",
    operation_id="collections.export",
    summary="Export a collection",
    response_class=Response,
    responses=keyed(403, 404, 429, 507) | _EXPORTED,
)
async def export(access: OwnerAccess) -> Response:
    """Answer the collection as it is at one moment, while writes go on; keys, jobs and work in progress stay out."""
    exports = access.services.exports
    exports.take()
    packing = asyncio.create_task(run_in_threadpool(_packed, access.services, access.collection))
    try:
        file = await asyncio.shield(packing)
    except asyncio.CancelledError:
        # The thread packs on: its place is taken until it ends, and nobody is there to send its file.
        packing.add_done_callback(partial(_put_away, exports))
        raise
    except BaseException:
        exports.leave()
        raise
    size = file.tell()
    file.seek(0)
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": f'attachment; filename="{access.collection.name}.zip"',
    }
    return ExportResponse(file, exports, access.services.settings.export_seconds, headers)


class ExportResponse(StreamingResponse):
    """Send a bundle, for so many seconds at most, then close it and leave its place, whatever became of the caller."""

    def __init__(self, file: IO[bytes], exports: ExportPlaces, seconds: float, headers: dict[str, str]) -> None:
        super().__init__(iter(partial(file.read, BLOCK_BYTES), b""), media_type=ZIP, headers=headers)
        self._file, self._exports, self._seconds = file, exports, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what the class says."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            # The answer is shorter than its `Content-Length`, which the caller sees.
            log.warning("an export was not taken in time")
        finally:
            self._exports.leave()
            # Begun at once and never given up, also where the request is cancelled, now or while this waits.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._file.close))


async def new_name(
    services: CurrentServices, principal: CurrentPrincipal, collection: CollectionName, idempotency: IdempotencyKey
) -> str:
    """Return the name of a collection that the admin key may make, before the body is read; raises `NameTaken`."""
    if principal.role is not Role.ADMIN:
        # Another key hears of collections only what it hears everywhere.
        await run_in_threadpool(visible_collection, services, principal, collection)
        check_role(principal, Role.ADMIN)
    # A request that is repeated finds the collection that it made itself.
    if idempotency.key is None and await run_in_threadpool(services.collections.get, collection) is not None:
        raise NameTaken(f"there is a collection {collection!r} already", hint="import under another name")
    return collection


NewName = Annotated[str, Depends(new_name)]


async def spooled_archive(request: Request, services: CurrentServices, _name: NewName) -> AsyncIterator[Path]:
    """Yield the body as a file."""
    spool = Spool(services.ingestion.spool)
    try:
        yield await spool_body(request, spool, services.settings.max_upload_bytes)
    finally:
        await run_in_threadpool(spool.close)


@router.post(
    "/{collection}/import",
    operation_id="collections.import",
    summary="Import a collection",
    status_code=201,
    response_model=CollectionReply,
    responses=keyed(403, 404, 409, 413, 415, 507),
    openapi_extra=binary_body(ZIP),
)
async def import_(
    services: CurrentServices,
    name: NewName,
    file: Annotated[Path, Depends(spooled_archive)],
    idempotency: IdempotencyKey,
) -> Response:
    """Make a collection of what an export gave, with the same ids, etags and vectors; no model is asked."""

    async def make() -> Response:
        return reply(collection_reply(await run_in_threadpool(_imported, services, name, file)), 201)

    payload = b"" if idempotency.key is None else await run_in_threadpool(_digest, file)
    return await answered_once(idempotency, make, payload=payload)


def _packed(services: Services, collection: Collection) -> IO[bytes]:
    """Return an export in a file that has no name, so that nothing of it is left whatever happens."""
    file = tempfile.TemporaryFile(dir=services.ingestion.spool)  # noqa: SIM115 - the answer reads and closes it
    try:
        export_collection(services.ingestion, collection, file)
    except BaseException:
        file.close()
        raise
    return file


def _put_away(exports: ExportPlaces, packing: asyncio.Task[IO[bytes]]) -> None:
    """Close the bundle that nobody waits for any more, if it came to one, and leave its place."""
    if not packing.cancelled() and packing.exception() is None:
        packing.result().close()
    exports.leave()


def _imported(services: Services, name: str, file: Path) -> Collection:
    most_bytes = INFLATION * services.settings.max_upload_bytes
    return import_collection(services.ingestion, name, file, check_settings=archived_settings, most_bytes=most_bytes)


def _digest(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
