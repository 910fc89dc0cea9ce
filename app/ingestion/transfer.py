"""Carry a request to the parsing process and its result back, as frames on a pipe.

Frames are JSON or UTF-8 text, never code: a parser that a hostile file took over can send nothing that runs here.
Each frame is small, so that the side that decodes it lets other threads run in between.
"""

import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import app.errors
from app.domain import Chunk, ChunkingOptions, ContextOptions, Extraction, Heading, NormalisationOptions, Notice, Page
from app.errors import FieldError, FootnoteError
from app.inference.port import TokenCounterSpec
from app.ingestion.alignment import KnownPiece
from app.ingestion.attachment_names import safe_name
from app.ingestion.port import LoadLimits, Prepared, PrepareRequest, ReceivedAttachment

HEADER = struct.Struct(">cI")
"""A frame's kind and the length of its payload in bytes."""
REQUEST, TEXT, PAGES, HEADINGS, CHUNKS, EXTRACTION, FAILURE, DEFECT = b"R", b"T", b"P", b"H", b"C", b"E", b"F", b"D"
LAST_FRAMES = frozenset({EXTRACTION, FAILURE, DEFECT})
"""Kinds after which a document sends nothing more."""
PAGES_ALLOWED = b"A"
"""A frame that comes before a result: how many pages must be recognised, which takes longer than parsing."""
PROGRESS = b"G"
"""JSON of a stage's name, how much of it is done, of how much, and the unit; `null` where that is not known."""
ATTACHMENT, ATTACHED_BYTES = b"N", b"B"
"""An attachment begins with its name and type; its bytes follow, in as many frames as they need."""
LARGEST_FRAME = 16_000_000
_CHARACTERS_IN_A_FRAME = 200_000
_ROWS_IN_A_FRAME = 200
_BYTES_IN_A_FRAME = 1_000_000

_ERRORS = {
    name: kind for name, kind in vars(app.errors).items() if isinstance(kind, type) and issubclass(kind, FootnoteError)
}

_Row = TypeVar("_Row")
Frame = tuple[bytes, bytes]


def request_frame(request: PrepareRequest) -> Frame:
    """Return a request as a frame."""
    as_text = {
        "path": str(request.path),
        "attachments_folder": None if request.attachments_folder is None else str(request.attachments_folder),
        "known": [[piece.start, piece.length, piece.opening, piece.digest.hex()] for piece in request.known],
    }
    return REQUEST, _encoded(asdict(request) | as_text)


def read_request(payload: bytes) -> PrepareRequest:
    """Return the request in a frame's payload."""
    members = json.loads(payload)
    folder = members["attachments_folder"]
    chunking = members["chunking"]
    return PrepareRequest(
        **members
        | {
            "path": Path(members["path"]),
            "attachments_folder": None if folder is None else Path(folder),
            "known": tuple(_known(*piece) for piece in members["known"]),
            "chunking": ChunkingOptions(**chunking | {"chunks": tuple(chunking["chunks"])}),
            "normalisation": NormalisationOptions(**members["normalisation"]),
            "contexts": ContextOptions(**members["contexts"]),
            "token_counter": TokenCounterSpec(**members["token_counter"]),
            "limits": LoadLimits(**members["limits"]),
        }
    )


def _known(start: int, length: int, opening: str, digest: str) -> KnownPiece:
    return KnownPiece(start, length, opening, bytes.fromhex(digest))


def result_frames(prepared: Prepared, resident_bytes: int) -> Iterator[Frame]:
    """Yield a result: its text, pages, headings and chunks, and at last what there is one of."""
    extraction = prepared.extraction
    for start in range(0, len(extraction.text), _CHARACTERS_IN_A_FRAME):
        yield TEXT, extraction.text[start : start + _CHARACTERS_IN_A_FRAME].encode()
    yield from _batches(PAGES, extraction.pages, lambda page: [page.number, page.start, page.end])
    yield from _batches(HEADINGS, extraction.headings, lambda heading: [heading.level, heading.title, heading.start])
    yield from _batches(CHUNKS, prepared.chunks, _chunk_row)
    for attachment in extraction.attachments:
        yield ATTACHMENT, _encoded([attachment.name, attachment.media_type])
        for start in range(0, len(attachment.data), _BYTES_IN_A_FRAME):
            yield ATTACHED_BYTES, attachment.data[start : start + _BYTES_IN_A_FRAME]
    members = {
        name: getattr(extraction, name)
        for name in ("parser", "media_type", "source_type", "encoding", "title", "metadata", "coverage", "details")
    }
    warnings = [[warning.code, warning.detail, warning.extra] for warning in extraction.warnings]
    tail = {"warnings": warnings, "timings_ms": prepared.timings_ms, "resident_bytes": resident_bytes}
    yield EXTRACTION, _encoded(members | tail)


def failure_frame(error: FootnoteError) -> Frame:
    """Return an error as a frame."""
    members = {name: getattr(error, name) for name in ("detail", "code", "hint", "retry_after", "extra")}
    return FAILURE, _encoded(members | {"class": type(error).__name__, "errors": [asdict(e) for e in error.errors]})


def read_failure(payload: bytes) -> FootnoteError:
    """Return the error in a frame's payload, of the class that it had."""
    members = json.loads(payload)
    kind = _ERRORS[members.pop("class")]
    errors = [FieldError(**error) for error in members.pop("errors")]
    return kind(members.pop("detail"), errors=errors, **members)


class Receiver:
    """Put the frames of one result together; attachments become files in `folder`, which are gone if it fails."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._attachments: list[ReceivedAttachment] = []
        self.resident_bytes = 0
        self._text: list[str] = []
        self._pages: list[Page] = []
        self._headings: list[Heading] = []
        self._rows: list[list[Any]] = []

    def receive(self, kind: bytes, payload: bytes) -> Prepared | None:
        """Take one frame; return the result when it was the last. Raises the `FootnoteError` that a frame carries."""
        if kind == TEXT:
            self._text.append(payload.decode())
        elif kind == PAGES:
            self._pages.extend(Page(*row) for row in json.loads(payload))
        elif kind == HEADINGS:
            self._headings.extend(Heading(*row) for row in json.loads(payload))
        elif kind == CHUNKS:
            self._rows.extend(json.loads(payload))
        elif kind == FAILURE:
            raise read_failure(payload)
        elif kind in (ATTACHMENT, ATTACHED_BYTES) and self._folder is not None:
            self._receive_attachment(kind, payload, self._folder)
        elif kind == EXTRACTION:
            return self._result(json.loads(payload))
        else:
            raise ValueError(f"a frame of kind {kind!r} is unknown")
        return None

    def discard(self) -> None:
        """Delete the attachments of a result that did not come whole."""
        for attachment in self._attachments:
            attachment.path.unlink(missing_ok=True)

    def _receive_attachment(self, kind: bytes, payload: bytes, folder: Path) -> None:
        if kind == ATTACHMENT:
            name, media_type = json.loads(payload)
            descriptor, path = tempfile.mkstemp(prefix="attachment-", dir=folder)
            os.close(descriptor)
            self._attachments.append(ReceivedAttachment(safe_name(name), media_type, Path(path)))
        else:
            with self._attachments[-1].path.open("ab") as file:
                file.write(payload)

    def _result(self, members: dict[str, Any]) -> Prepared:
        text = "".join(self._text)
        timings = members.pop("timings_ms")
        self.resident_bytes = members.pop("resident_bytes")
        warnings = tuple(Notice(*warning) for warning in members.pop("warnings"))
        extraction = Extraction(
            text=text, pages=tuple(self._pages), headings=tuple(self._headings), warnings=warnings, **members
        )
        chunks = tuple(_chunk(ordinal, row, text) for ordinal, row in enumerate(self._rows))
        return Prepared(extraction, chunks, timings, tuple(self._attachments))


def _chunk_row(chunk: Chunk) -> list[Any]:
    place = [chunk.start, chunk.end, chunk.token_count, chunk.context, chunk.heading_path]
    return [*place, chunk.page_start, chunk.page_end, chunk.kind, chunk.parent]


def _chunk(ordinal: int, row: list[Any], text: str) -> Chunk:
    start, end, token_count, context, heading_path, page_start, page_end, kind, parent = row
    path = tuple(heading_path)
    return Chunk(ordinal, start, end, text[start:end], token_count, context, path, page_start, page_end, kind, parent)


def _batches(kind: bytes, items: Sequence[_Row], row: Callable[[_Row], list[Any]]) -> Iterable[Frame]:
    for start in range(0, len(items), _ROWS_IN_A_FRAME):
        yield kind, _encoded([row(item) for item in items[start : start + _ROWS_IN_A_FRAME]])


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")
