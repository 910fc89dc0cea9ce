"""Take files in: a body or the parts of a form go straight to the spool folder, whatever their size."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.api.json_body import limited_stream
from app.api.schemas.strict import unknown_name
from app.errors import FieldError, InvalidRequest, PayloadTooLarge, UnknownField, UnsupportedMediaType

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

SETTING = "FOOTNOTE_MAX_UPLOAD_BYTES"
BLOCK_BYTES = 1 << 20
INFO_BYTES = 4_000_000

_PART_NAMES = ("files", "info")


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """A file that a caller sent, as its part of the form described it."""

    path: Path
    filename: str | None
    media_type: str | None


@dataclass(slots=True)
class Form:
    """The parts of an upload."""

    files: list[SpooledFile] = field(default_factory=list)
    info: bytes | None = None


class Spool:
    """Files of one request in the spool folder; what nobody has taken goes when it closes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._open = ExitStack()

    def create(self) -> tuple[Path, BinaryIO]:
        """Return a new file, open for writing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="upload-", dir=self._folder)
        self._made.append(Path(name))
        return Path(name), self._open.enter_context(open(descriptor, "wb"))  # noqa: PTH123 - from its descriptor

    def close(self) -> None:
        """Close every file and delete those that are still here."""
        self._open.close()
        for path in self._made:
            path.unlink(missing_ok=True)


async def spool_body(request: Request, spool: Spool, limit: int) -> Path:
    """Write the body to a file; raise `PayloadTooLarge` where it crosses `limit` bytes."""
    path, file = await run_in_threadpool(spool.create)
    async for block in _blocks(request, limit):
        await run_in_threadpool(file.write, block)
    await run_in_threadpool(file.close)
    return path


async def spool_form(request: Request, spool: Spool, *, limit: int, most_files: int) -> Form:
    """Write each `files` part to a file and keep the `info` part; raise `InvalidRequest` for an unsound form."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data":
        raise UnsupportedMediaType(
            "an upload must be multipart/form-data", hint="send the files as parts named `files`"
        )
    reader = _FormReader(spool, most_files)
    try:
        parser = MultipartParser(options.get(b"boundary", b""), reader.callbacks())
        async for block in _blocks(request, limit):
            await run_in_threadpool(parser.write, block)
        parser.finalize()
    except FormParserError:
        raise _invalid_form("", "the form's parts cannot be told apart") from None
    if not reader.is_complete:
        raise _invalid_form("", "the form ends before its last boundary")
    return reader.form


class _FormReader:
    """Callbacks of the parser: the state of the part being read."""

    def __init__(self, spool: Spool, most_files: int) -> None:
        self.form = Form()
        self.is_complete = False
        self._spool, self._most_files = spool, most_files
        self._headers: dict[str, bytearray] = {}
        self._name, self._value = bytearray(), bytearray()
        self._file: BinaryIO | None = None
        self._info = bytearray()

    def callbacks(self) -> "MultipartCallbacks":
        """Return the callbacks by the parser's names."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._headers = {}

    def _end_header(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = self._value
        self._name, self._value = bytearray(), bytearray()

    def _open(self) -> None:
        disposition, options = parse_options_header(self._header("content-disposition"))
        name = _decoded(options.get(b"name", b""))
        if disposition != b"form-data" or name not in _PART_NAMES:
            detail = f"the part {unknown_name(name, _PART_NAMES)}"
            raise UnknownField(detail, errors=[FieldError(f"/{name}", "unknown_field", detail)])
        if name == "info":
            if self.form.info is not None:
                raise _invalid_form("/info", "there may be one `info` part")
            self._file = None
            return
        if not options.get(b"filename"):
            raise _invalid_form(f"/files/{len(self.form.files)}", "a `files` part needs a file name")
        if len(self.form.files) == self._most_files:
            raise _invalid_form("/files", f"above {self._most_files} files (FOOTNOTE_MAX_BATCH_DOCUMENTS)")
        path, self._file = self._spool.create()
        media_type = self._header("content-type").split(";")[0].strip().lower() or None
        self.form.files.append(SpooledFile(path, _decoded(options[b"filename"]), media_type))

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._info += data[start:end]
        if len(self._info) > INFO_BYTES:
            raise PayloadTooLarge(f"the `info` part is above {INFO_BYTES} bytes")

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
        else:
            self.form.info = bytes(self._info)

    def _finish(self) -> None:
        self.is_complete = True

    def _header(self, name: str) -> str:
        return self._headers.get(name, bytearray()).decode("latin-1")


async def _blocks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Gather the body's small blocks, so that there is one hop into a thread for each mebibyte."""
    gathered = bytearray()
    async for block in limited_stream(request, limit, SETTING):
        gathered += block
        if len(gathered) >= BLOCK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _invalid_form(pointer: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason, code="invalid_form", errors=[FieldError(pointer, "invalid_form", reason)])
