"""What a loader and a chunker must do. Both are pure functions of a file or a text and run in a child process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.domain import Chunk, ChunkingOptions, ContextOptions, Extraction, NormalisationOptions
from app.inference.port import TokenCounterSpec
from app.ingestion.alignment import KnownPiece


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """What parsing one file may cost; each is a setting of the same name."""

    max_pages: int
    max_characters: int
    max_chunks: int
    parse_timeout_seconds: float
    parse_memory_bytes: int
    ocr_page_seconds: float = 60.0
    max_ocr_pages: int = 500
    max_attachments: int = 100


def allow_nothing(_: int) -> None:
    """Leave the time limit as it is."""


TellPages = Callable[[int, int], None]
"""Hear how many pages of how many are read."""


def tell_nobody(_done: int, _total: int) -> None:
    """Hear nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to load. `media_type` is what detection found, `declared` what the caller said (or `None`)."""

    path: Path
    media_type: str
    declared: str | None
    filename: str | None
    password: str | None = field(repr=False)
    limits: LoadLimits
    allow_pages: Callable[[int], None] = allow_nothing
    """Say how many pages must be recognised: each adds `limits.ocr_page_seconds` to the time that parsing may take."""
    tell_pages: TellPages = tell_nobody


class Loader(Protocol):
    """Turn one kind of file into canonical text. Raises the `UnusableDocument` that says why it cannot."""

    def __call__(self, source: Source) -> Extraction:
        """Return the text with its pages, headings, metadata and report; never an empty success."""
        ...


CountTokens = Callable[[str], int]
"""Return how many tokens the collection's model makes of a text, its control tokens and prefix included."""


class Chunker(Protocol):
    """Cut a canonical text into chunks with exact offsets."""

    def __call__(
        self, extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
    ) -> Iterator[Chunk]:
        """Yield chunks by ordinal: `text[start:end]` each, none above `size` or the window.

        No text is left out but white space. `token_count` is what the text has of its own, without control tokens,
        and is what `size` counts where `unit` is `tokens`. A single code point is a chunk whatever its tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """One document's trip through the child process: detect, load, clean, cut. `transfer.py` carries it as JSON."""

    path: Path
    declared: str | None
    filename: str | None
    password: str | None = field(repr=False)
    title: str | None
    chunking: ChunkingOptions
    token_counter: TokenCounterSpec
    window_tokens: int
    limits: LoadLimits
    normalisation: NormalisationOptions = field(default_factory=NormalisationOptions)
    contexts: ContextOptions = field(default_factory=ContextOptions)
    known: tuple[KnownPiece, ...] = ()
    """The chunks of the present version, where it was cut in the same way."""
    attachments_folder: Path | None = None
    """Where attachments are received; without it they are left out."""


@dataclass(frozen=True, slots=True)
class ReceivedAttachment:
    """An attachment as the child process handed it out; the file at `path` belongs to who receives it."""

    name: str
    media_type: str | None
    path: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """What comes back: the extraction, its chunks with their contexts, and the milliseconds of each stage."""

    extraction: Extraction
    chunks: tuple[Chunk, ...]
    timings_ms: dict[str, float]
    attachments: tuple[ReceivedAttachment, ...] = ()


class JobReport(Protocol):
    """What a running job tells, and learns, about itself."""

    @property
    def job_id(self) -> str:
        """Return the job's id."""
        ...

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        """Begin the stage called `name`, which ends the one before; raise `Cancelled` if the job was cancelled."""
        ...

    def advance(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Say how much of the stage is done, and of how much if that is known now; raise `Cancelled` if it was."""
        ...
