"""What every command shares: where it writes, how it tells errors, the services it works with, and its progress."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.errors import FootnoteError, NotFound
from app.ingestion.folder import FileInWork
from app.settings import load_settings
from app.telemetry import configure_logging

LINE_SECONDS = 2.0
"""Least time between two lines of progress where there is no terminal."""

PASSWORD_VARIABLE = "DOCUMENT_PASSWORD"  # noqa: S105 - the name of a variable
"""Not a `FOOTNOTE_` setting: it belongs to the files of one command, and no server should know it."""

_ROWS = 8

CollectionOption = Annotated[str, typer.Option("--collection", "-c", help="The collection's name")]

console = Console(soft_wrap=True)
errors = Console(stderr=True, soft_wrap=True)


@contextmanager
def told_errors() -> Iterator[None]:
    """End the command with status 2 and a sentence for what goes wrong."""
    try:
        yield
    except FootnoteError as error:
        errors.print(f"[red]{error.code}[/]: {escape(error.detail)}")
        if error.hint:
            errors.print(f"hint: {escape(error.hint)}")
        raise typer.Exit(2) from None
    except OSError as error:
        errors.print(f"[red]storage_unavailable[/]: {escape(str(error))}")
        errors.print("hint: FOOTNOTE_DATA must name a folder that can be written")
        raise typer.Exit(2) from None


@contextmanager
def open_services() -> Iterator[Services]:
    """Give the services on the data folder, beside a running server or without one."""
    with told_errors():
        settings = load_settings()
        configure_logging("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
        services = build_services(settings)
        try:
            yield services
        finally:
            services.close()


def find_collection(services: Services, name: str) -> Collection:
    """Return the collection; raise `NotFound` that names those there are."""
    collection = services.collections.get(name)
    if collection is None:
        names = ", ".join(found.name for found in services.collections.every()) or "none yet"
        raise NotFound(f"there is no collection {name!r}", hint=f"there are: {names}")
    return collection


def read_password() -> str:
    """Return the password of encrypted files: the variable's, or what is typed unseen, or the first line of a pipe."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is None and sys.stdin.isatty():
        given = str(typer.prompt("Password of the files", hide_input=True, err=True))
    return given if given is not None else sys.stdin.readline().rstrip("\r\n")


class IngestProgress:
    """Show how many files are done and how far those in work are: as bars in a terminal, else as lines now and then."""

    def __init__(self, output: Console = errors) -> None:
        self._output = output
        self._told = time.monotonic()
        self._line = ""
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeElapsedColumn(),
            console=output,
            disable=not output.is_terminal,
        )
        self._overall = self._bars.add_task("ingesting", unit="files")
        self._rows: dict[tuple[str, str | None], TaskID] = {}

    def __enter__(self) -> Self:
        """Begin to show."""
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show the last state and end."""
        self._bars.stop()
        if not self._output.is_terminal and self._line:
            self._output.print(self._line)

    def __call__(self, done: int, total: int, in_work: Sequence[FileInWork] = ()) -> None:
        """Show the present state."""
        if self._output.is_terminal:
            self._bars.update(self._overall, completed=done, total=total)
            self._show_rows(in_work[:_ROWS])
        else:
            self._show_line(done, total, in_work)

    def _show_rows(self, in_work: Sequence[FileInWork]) -> None:
        # Each stage has a row of its own, since a row cannot forget a total that the next stage does not know.
        stages = {(each.job_id, each.stage): each for each in in_work}
        for gone in self._rows.keys() - stages.keys():
            self._bars.remove_task(self._rows.pop(gone))
        for stage, each in stages.items():
            if stage not in self._rows:
                described = f"  {escape(each.path)}: {each.stage or 'begun'}"
                self._rows[stage] = self._bars.add_task(described, total=None, unit=each.unit or "")
            self._bars.update(self._rows[stage], completed=each.done, total=each.total, unit=each.unit or "")

    def _show_line(self, done: int, total: int, in_work: Sequence[FileInWork]) -> None:
        self._line = f"{done} of {total} files"
        now = time.monotonic()
        if now - self._told >= LINE_SECONDS:
            self._told = now
            self._output.print("; ".join([self._line, *(_words(each) for each in in_work)]), markup=False)


def _words(each: FileInWork) -> str:
    counts = f" {each.done} of {each.total} {each.unit or ''}".rstrip() if each.total else ""
    return f"{each.path}: {each.stage or 'begun'}{counts}"
