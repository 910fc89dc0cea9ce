"""The command line. It calls the verbs, on the data folder itself, and holds no logic of its own."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
import uvicorn
import watchfiles
from rich.markup import escape

from app import cli_data, cli_search
from app.api.openapi import openapi_document
from app.bootstrap import Services, build_services
from app.catalog.admin_key import admin_key
from app.catalog.collections import Collection
from app.catalog.principal import Role
from app.ingestion.collections import create_collection
from app.ingestion.folder import FailedFile, FolderIngest, scan
from app.ingestion.verify import find_differences
from app.server_processes import run_server
from app.settings import Settings, load_settings
from app.telemetry import configure_logging
from app.terminal import (
    PASSWORD_VARIABLE,
    CollectionOption,
    IngestProgress,
    console,
    errors,
    find_collection,
    open_services,
    read_password,
    told_errors,
)
from app.worker import Worker

WORKER_SILENCE_SECONDS = 60
"""How long a server process may not answer its parent before it is replaced; on a busy machine importing takes ten."""

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Footnote: documents in, cited answers out.")


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Server processes")] = None,
) -> None:
    """Serve the REST API."""
    with told_errors():
        settings = load_settings()
        configure_logging(settings.log_level, settings.log_format)
        settings.data.mkdir(parents=True, exist_ok=True)
        _show_new_admin_key(settings)
        # Whatever cannot be built is told here once, instead of by each server process again and again.
        build_services(settings).close()
        config = uvicorn.Config(
            "app.main:create_app",
            factory=True,
            host=host or settings.host,
            port=settings.port if port is None else port,
            workers=workers or settings.workers,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=20,
            timeout_worker_healthcheck=WORKER_SILENCE_SECONDS,
        )
        # Its processes read the settings for themselves.
        os.environ["FOOTNOTE_WORKERS"] = str(config.workers)
        run_server(config)


@app.command()
def migrate() -> None:
    """Bring the catalog and every collection to the newest schema, and convert the embedded model."""
    with open_services() as services:
        count = 0
        for collection in services.collections.every():
            with services.opened.get(collection.id):
                count += 1
        model = services.embedders.default_model
        dimensions = services.embedders.get(model).space.dimensions
        console.print(f"{count} collections are up to date; {escape(model)} is ready ({dimensions} dimensions)")


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="What the key is for")],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="A collection it opens; repeatable")],
    role: Annotated[Role, typer.Option(help="What it may do")] = Role.ASK,
    expires_at: Annotated[datetime | None, typer.Option(help="When it ends (UTC)")] = None,
) -> None:
    """Make a key; its secret is printed once."""
    with open_services() as services:
        ids = [find_collection(services, wanted).id for wanted in collection]
        ends = expires_at.replace(tzinfo=UTC) if expires_at else None
        made, secret = services.api_keys.create(
            name, collection_ids=ids, role=role, filter=None, expires_at=ends, requests_per_minute=None
        )
        errors.print(f"key {made.id}: role {made.role.value}; keep the secret, it is not shown again")
        sys.stdout.write(secret + "\n")


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders")],
    collection: CollectionOption,
    sync: Annotated[bool, typer.Option("--sync", help="Also delete documents whose file is gone")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and take each change as it comes")] = False,
    password: Annotated[
        bool, typer.Option("--password", help=f"Ask for the password of encrypted files, or take {PASSWORD_VARIABLE}")
    ] = False,
) -> None:
    """Ingest files and folders, recursively; unchanged files cost nothing."""
    secret = read_password() if password else None
    with open_services() as services:
        wanted = _find_or_create(services, collection)
        folder = FolderIngest(services.ingestion, services.jobs, wanted, sync=sync, password=secret)
        with Worker(services, warms_up=False).running():
            for _ in _changes(paths) if watch else [None]:
                succeeded = _ingest_folder(folder, paths, services.settings.max_upload_bytes)
        if not succeeded and not watch:
            raise typer.Exit(1)


def _changes(paths: Sequence[Path]) -> Iterator[None]:
    """Yield once when the paths are watched, so that no change is missed, then after each change, until Ctrl-C."""
    watcher = watchfiles.watch(*paths, rust_timeout=100, yield_on_timeout=True)
    next(watcher)
    console.print("watching; Ctrl-C ends it")
    yield
    yield from (None for changes in watcher if changes)


def _ingest_folder(folder: FolderIngest, paths: Sequence[Path], max_bytes: int) -> bool:
    """Ingest what is there now and print what became of it; return whether no file failed."""
    found = scan(paths, max_bytes=max_bytes)
    for skipped in found.skipped:
        errors.print(f"[yellow]skipped[/] {escape(str(skipped.file))}: {escape(skipped.reason)}")
    outcome = folder.run(found, IngestProgress())
    for failure in outcome.failures:
        errors.print(f"[red]failed[/] {escape(failure.path)}: {failure.code}: {escape(failure.detail)}")
        if hint := _hint(failure):
            errors.print(f"  hint: {escape(hint)}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcome.counts.items()))
    console.print(counts or "nothing to do")
    return not outcome.failures


def _hint(failure: FailedFile) -> str | None:
    """Return what to do next on the command line, where the hint that the API gives names a header."""
    if failure.code in ("password_required", "password_wrong"):
        return f"add --password, which asks for it (or takes it from {PASSWORD_VARIABLE})"
    return failure.hint


@app.command()
def verify(collection: CollectionOption) -> None:
    """Compare a collection's store, index and originals."""
    with open_services() as services:
        with services.opened.get(find_collection(services, collection).id) as opened:
            differences = find_differences(services.ingestion, opened)
        for difference in differences:
            console.print(escape(json.dumps(difference, ensure_ascii=False)))
        console.print("clean" if not differences else f"{len(differences)} differences")
        if differences:
            raise typer.Exit(1)


@app.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    sys.stdout.write(json.dumps(openapi_document(), ensure_ascii=False, indent=2) + "\n")


def _show_new_admin_key(settings: Settings) -> None:
    secret, is_new = admin_key(settings)
    if is_new:
        errors.print(f"Admin key, shown this once and kept in {settings.data / 'admin.key'}:")
        errors.print(f"  {secret}", highlight=False)


def _find_or_create(services: Services, name: str) -> Collection:
    collection = services.collections.get(name)
    if collection is not None:
        return collection
    return create_collection(services.ingestion, name, title=None, description=None, settings={})


cli_search.register(app)
cli_data.register(app)
