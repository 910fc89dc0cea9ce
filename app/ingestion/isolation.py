"""Parse each document in a child process that can be killed, with limits of time and memory.

A child is started when it is needed, kept warm for the next document and ended when it has been idle for a while, has
grown, or has read many documents. It gets no settings, no keys and no sockets of this process.
"""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from app.errors import DamagedDocument, DocumentLimitExceeded, FootnoteError, Unavailable
from app.ingestion.port import JobReport, LoadLimits, Prepared, PrepareRequest
from app.ingestion.transfer import (
    DEFECT,
    HEADER,
    LARGEST_FRAME,
    LAST_FRAMES,
    PAGES_ALLOWED,
    PROGRESS,
    Frame,
    Receiver,
    request_frame,
)

IDLE_SECONDS = 15.0
MAX_DOCUMENTS = 200
MAX_RESIDENT_BYTES = 400_000_000
_READ_SIZE = 1 << 20
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
_LAST_BREATH_SECONDS = 5.0

logger = logging.getLogger(__name__)


class _OutOfTime(Exception):
    """The child did not answer before the deadline."""


class _Died(Exception):
    """The child ended amid a document."""


class ParserPool:
    """At most `size` children; `prepare` waits while all are busy, at most for `patience_seconds`. Thread-safe."""

    def __init__(self, size: int, idle_seconds: float = IDLE_SECONDS, *, patience_seconds: float | None = None) -> None:
        self._free = threading.Semaphore(size)
        self._patience_seconds = patience_seconds
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._reaper: threading.Timer | None = None
        self._closed = False

    def prepare(self, request: PrepareRequest, report: JobReport | None = None) -> Prepared:
        """Detect, load and cut a document in a child, which tells the report how it goes.

        Raises what the loader raises, `DocumentLimitExceeded` that names the setting of time or memory,
        `DamagedDocument` when the parser died of the document or failed on it, and `Unavailable` when none was free.
        """
        with self._turn():
            child = self._take()
            keep = False
            try:
                prepared = child.prepare(request, report)
            except FootnoteError as error:
                # Memory that ran out once is in pieces: such a child ends itself.
                keep = child.is_fit and not isinstance(error, DocumentLimitExceeded)
                raise
            except _OutOfTime:
                raise _too_slow(request.limits) from None
            except _Died:
                raise _stopping() if child.is_interrupted else _verdict(child.end(), request.limits) from None
            else:
                keep = child.is_fit
                return prepared
            finally:
                self._put_back(child, keep=keep)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._free.acquire(timeout=self._patience_seconds):
            raise Unavailable("every parser is busy", hint="try again", retry_after=self._patience_seconds)
        try:
            yield
        finally:
            self._free.release()

    def interrupt(self) -> None:
        """End the children at work, whose callers get `Unavailable`; others can be started afterwards."""
        with self._lock:
            for child in self._busy:
                child.is_interrupted = True
                child.kill()

    def close(self) -> None:
        """End every child, also those at work, whose callers get `Unavailable`."""
        self.interrupt()
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._reaper:
                self._reaper.cancel()
        for child in idle:
            child.end()

    def _take(self) -> "_Child":
        with self._lock:
            if self._closed:
                raise _stopping()
            child = self._idle.pop() if self._idle else _Child()
            if not child.is_alive:
                child.end()
                child = _Child()
            self._busy.add(child)
            return child

    def _put_back(self, child: "_Child", *, keep: bool) -> None:
        with self._lock:
            self._busy.discard(child)
            keep = keep and not self._closed
            if keep:
                child.idle_since = time.monotonic()
                self._idle.append(child)
                self._plan_reaping()
        if not keep:
            child.end()

    def _plan_reaping(self) -> None:
        if self._reaper is None and self._idle:
            self._reaper = threading.Timer(self._idle_seconds, self._reap)
            self._reaper.daemon = True
            self._reaper.start()

    def _reap(self) -> None:
        """End the children that have been idle long enough."""
        latest = time.monotonic() - self._idle_seconds
        with self._lock:
            self._reaper = None
            tired = [child for child in self._idle if child.idle_since <= latest]
            self._idle = [child for child in self._idle if child not in tired]
            self._plan_reaping()
        for child in tired:
            child.end()


def _verdict(exit_status: int, limits: LoadLimits) -> FootnoteError:
    """Return the error that a child's end amid a document means."""
    logger.warning("a parser process died", extra={"exit_status": exit_status})
    if exit_status == -signal.SIGXCPU:
        return _too_slow(limits)
    if exit_status == -signal.SIGKILL:
        return DocumentLimitExceeded(
            "the system ended the parser, most likely for want of memory",
            hint="split the document, give the machine more memory, or lower FOOTNOTE_PARSE_MEMORY_BYTES",
        )
    return DamagedDocument("the parser died of this file", hint="open it in its program and save it anew")


def _too_slow(limits: LoadLimits) -> DocumentLimitExceeded:
    return DocumentLimitExceeded(
        f"parsing the document took longer than {limits.parse_timeout_seconds:g} seconds",
        hint="split the document, or raise FOOTNOTE_PARSE_TIMEOUT_SECONDS",
    )


def _stopping() -> Unavailable:
    return Unavailable("the service is stopping", hint="try again when it has started")


class _Child:
    """One parsing process and its two pipes; used by one thread at a time, `kill` by any."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_interrupted = False
        self.documents = 0
        self.resident_bytes = 0
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.ingestion.parser_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(),
            # A Ctrl-C in the terminal is for the server, which ends its children itself.
            start_new_session=True,
        )
        self._input, self._output = cast("BinaryIO", self.process.stdin), cast("BinaryIO", self.process.stdout)
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN | select.POLLHUP)
        self._has_ended = False
        self._is_amid = False

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def is_fit(self) -> bool:
        """Return whether it may read another document; one that was left amid a document may not."""
        return not self._is_amid and self.documents < MAX_DOCUMENTS and self.resident_bytes < MAX_RESIDENT_BYTES

    def prepare(self, request: PrepareRequest, report: JobReport | None) -> Prepared:
        """Send one request and receive its answer."""
        self.documents += 1
        self._is_amid = True
        deadline = time.monotonic() + request.limits.parse_timeout_seconds
        self._send(request_frame(request))
        receiver = Receiver(request.attachments_folder)
        try:
            prepared = self._received(receiver, request.limits, deadline, report)
        except BaseException:
            receiver.discard()
            raise
        self.resident_bytes = receiver.resident_bytes
        return prepared

    def _received(self, receiver: Receiver, limits: LoadLimits, deadline: float, report: JobReport | None) -> Prepared:
        pages_allowed = 0
        while True:
            kind, payload = self._receive(deadline + pages_allowed * limits.ocr_page_seconds)
            if kind == PAGES_ALLOWED:
                pages_allowed = min(int(json.loads(payload)), limits.max_ocr_pages)
                continue
            if kind == PROGRESS:
                _pass_on(json.loads(payload), report)
                continue
            self._is_amid = kind not in LAST_FRAMES
            if kind == DEFECT:
                logger.error("a loader failed", extra={"where": payload.decode("utf-8", "replace")})
                raise DamagedDocument("the parser failed on this file", hint="open it in its program and save it anew")
            prepared = receiver.receive(kind, payload)
            if prepared is not None:
                return prepared

    def kill(self) -> None:
        """End the process, whoever waits for it."""
        self.process.kill()

    def end(self) -> int:
        """End the process, release its pipes and return its exit status; for the thread that has the child."""
        # One that is about to die by itself shall tell of what.
        try:
            status = self.process.wait(_LAST_BREATH_SECONDS if self._has_ended else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self._input.close()
        self._output.close()
        return status

    def _send(self, frame: Frame) -> None:
        kind, payload = frame
        try:
            self._input.write(HEADER.pack(kind, len(payload)) + payload)
        except BrokenPipeError:
            self._has_ended = True
            raise _Died from None

    def _receive(self, deadline: float) -> Frame:
        kind, length = HEADER.unpack(self._read(HEADER.size, deadline))
        if length > LARGEST_FRAME:
            raise _Died
        return kind, self._read(length, deadline)

    def _read(self, length: int, deadline: float) -> bytes:
        """Return exactly `length` bytes of the child's output."""
        parts = []
        while length:
            milliseconds = (deadline - time.monotonic()) * 1000
            if milliseconds <= 0 or not self._poll.poll(milliseconds):
                raise _OutOfTime
            part = os.read(self._output.fileno(), min(length, _READ_SIZE))
            if not part:
                self._has_ended = True
                raise _Died
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def _pass_on(progress: list[Any], report: JobReport | None) -> None:
    """Tell the report, which may end the work."""
    if report is None:
        return
    stage, done, total, unit = progress
    if total is None:
        report.stage(stage)
    else:
        report.advance(done, total, unit)


def _environment() -> dict[str, str]:
    """Return what a child may know: where modules are, and nothing of the settings."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
