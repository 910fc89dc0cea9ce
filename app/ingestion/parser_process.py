"""The process that parses: reads requests from its standard input, one at a time, and answers on its output.

It runs with a limit of memory and processor time, and ends when the process that started it is gone.
"""

import io
import json
import logging
import os
import queue
import resource
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from app.errors import DocumentLimitExceeded, FootnoteError
from app.ingestion.loaders import ocr
from app.ingestion.port import LoadLimits
from app.ingestion.prepare import Listener, prepare
from app.ingestion.transfer import (
    DEFECT,
    HEADER,
    PAGES_ALLOWED,
    PROGRESS,
    Frame,
    failure_frame,
    read_request,
    result_frames,
)

_NICENESS = 5
_PROGRESS_SECONDS = 0.2
_STATM = Path("/proc/self/statm")


def main() -> None:
    """Serve until the input ends."""
    logging.disable(logging.CRITICAL)
    os.nice(_NICENESS)
    # Libraries in C may print; what they print must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    address_space = _memory()[0]
    while True:
        _answer(requests.get(), answers, address_space)


def _read_requests(requests: "queue.SimpleQueue[bytes]") -> None:
    """Pass requests on; end the process at once when the input ends, even amid a document."""
    stream = sys.stdin.buffer
    while header := stream.read(HEADER.size):
        requests.put(stream.read(HEADER.unpack(header)[1]))
    os._exit(0)


def _answer(payload: bytes, answers: io.BufferedWriter, address_space: int) -> None:
    request = read_request(payload)
    _limit(request.limits, address_space)
    try:
        for frame in result_frames(prepare(request, _Telling(answers, request.limits)), _memory()[1]):
            _write(answers, frame)
    except FootnoteError as error:
        _write(answers, failure_frame(error))
    except MemoryError:
        _write(answers, failure_frame(too_much_memory(request.limits)))
        answers.flush()
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - any file may break any parser; the other side says which and logs it
        _write(answers, (DEFECT, _where(error).encode()))
    answers.flush()


class _Telling(Listener):
    """Pass on what happens while a document is prepared."""

    def __init__(self, answers: io.BufferedWriter, limits: LoadLimits) -> None:
        self._answers, self._limits = answers, limits
        self._told = 0.0

    def allow_pages(self, pages: int) -> None:
        # Processor time is counted in each of its threads.
        _limit_time(self._limits.parse_timeout_seconds + pages * self._limits.ocr_page_seconds * ocr.THREADS)
        self._tell(PAGES_ALLOWED, pages)

    def stage(self, name: str) -> None:
        self._tell(PROGRESS, [name, 0, None, None])

    def pages(self, done: int, total: int) -> None:
        if time.monotonic() - self._told >= _PROGRESS_SECONDS:
            self._told = time.monotonic()
            self._tell(PROGRESS, ["load", done, total, "pages"])

    def _tell(self, kind: bytes, value: Any) -> None:
        _write(self._answers, (kind, json.dumps(value).encode()))
        self._answers.flush()


def too_much_memory(limits: LoadLimits) -> DocumentLimitExceeded:
    """Return the error for a document that needs more memory than is allowed."""
    return DocumentLimitExceeded(
        f"parsing the document took more than {limits.parse_memory_bytes} bytes of memory",
        hint="split the document, or raise FOOTNOTE_PARSE_MEMORY_BYTES",
    )


def _write(answers: io.BufferedWriter, frame: Frame) -> None:
    kind, payload = frame
    answers.write(HEADER.pack(kind, len(payload)) + payload)


def _where(error: Exception) -> str:
    """Name the error and the place, without its message, which may quote the document."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{type(error).__name__} at " + ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)


def _limit(limits: LoadLimits, address_space: int) -> None:
    if address_space:
        _, most_memory = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (address_space + limits.parse_memory_bytes, most_memory))
    _limit_time(limits.parse_timeout_seconds)


def _limit_time(seconds: float) -> None:
    """Limit the processor time from now on; the other side limits the time on the clock."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    total = int(used.ru_utime + used.ru_stime + seconds) + 2
    _, most_seconds = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (total, most_seconds))


def _memory() -> tuple[int, int]:
    """Return the bytes of address space and of resident memory; zeros where the platform does not tell."""
    if not _STATM.exists():
        return 0, 0
    pages = [int(number) for number in _STATM.read_text().split()[:2]]
    return pages[0] * os.sysconf("SC_PAGE_SIZE"), pages[1] * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
