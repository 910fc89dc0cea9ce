"""Commands that carry data out and in: one collection, or the whole data folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.markup import escape

from app import backup as backups
from app.api.collection_settings import archived_settings
from app.ingestion.packing import export_collection
from app.ingestion.unpacking import import_collection
from app.settings import load_settings
from app.telemetry import configure_logging
from app.terminal import console, find_collection, open_services, told_errors


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("export")(export)
    app.command("import")(import_)
    app.command("backup")(backup)
    app.command("restore")(restore)


def export(
    name: Annotated[str, typer.Argument(help="The collection's name")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The zip to write, mode 0600")],
) -> None:
    """Export a collection as one zip, also while it is written; keys and jobs stay out."""
    with open_services() as services, _whole_file(output) as target:
        export_collection(services.ingestion, find_collection(services, name), target)
    console.print(f"{escape(name)} is in {escape(str(output))}")


def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What export gave")],
    name: Annotated[str, typer.Argument(help="The new collection's name")],
) -> None:
    """Make a collection of an exported zip, with the same ids and results; no model is asked."""
    with open_services() as services:
        import_collection(services.ingestion, name, file, check_settings=archived_settings)
    console.print(f"{escape(name)} is imported")


def backup(
    file: Annotated[Path, typer.Argument(help="The zip to write, mode 0600; it holds the admin key's file")],
) -> None:
    """Back up the whole data folder with its query logs, also while the service runs; no models, no indexes."""
    with open_services() as services, _whole_file(file) as target:
        count = backups.back_up(services, target)
    console.print(f"{count} collections are in {escape(str(file))}")


def restore(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What backup gave")],
    force: Annotated[bool, typer.Option("--force", help="Replace the data that is there")] = False,
) -> None:
    """Restore a backup into an empty data folder that no service runs on, and build the indexes."""
    with told_errors():
        settings = load_settings()
        configure_logging("warning", settings.log_format)
        count = backups.restore(settings, file, force=force)
    console.print(f"{count} collections are restored")


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file for writing, mode 0600, that takes its name only when it is whole and on the disk."""
    draft = path.with_name(f".{path.name}.partial-{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
