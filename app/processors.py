"""Share the processors among searches: no more of them work at once than there are, and one alone uses all.

More threads at work than processors would only take the interpreter's lock from each other: 32 clients of a collection
of 100,000 chunks then got half of what one client got.
"""

import contextvars
import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from app.turn import Turn

_Made = TypeVar("_Made")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of a period that a container may use, of all processors together (Linux, cgroups 2)."""


class Processors:
    """As many places to work as there are processors. Thread-safe; who came first works first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._places = Turn(count)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="beside")
        self._here = threading.local()

    def share(self, processes: int) -> None:
        """Take one of so many equal parts, at least one processor, before any work begins in this process."""
        self.count = max(1, self.count // processes)
        self._places = Turn(self.count)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for a processor and keep it; a thread that has one goes on with it."""
        if self._holds:
            yield
            return
        self._places.acquire()
        self._here.holds = True
        try:
            yield
        finally:
            self._here.holds = False
            self._places.release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Leave this thread's processor to others while it waits for something else, as for a model."""
        if not self._holds:
            yield
            return
        self._here.holds = False
        self._places.release()
        try:
            yield
        finally:
            self._places.acquire()
            self._here.holds = True

    def beside(self, work: Callable[[], _Made]) -> "Future[_Made] | None":
        """Begin the work on a processor that is idle, or return `None`: then it is done faster by who asked."""
        if not self._places.acquire_free():
            return None
        return self._pool.submit(contextvars.copy_context().run, self._worked, work)

    def result(self, future: "Future[_Made]") -> _Made:
        """Return what the work gives; this thread's processor is others' while it waits."""
        if future.done():
            return future.result()
        with self.lent():
            return future.result()

    @property
    def _holds(self) -> bool:
        return getattr(self._here, "holds", False)

    def _worked(self, work: Callable[[], _Made]) -> _Made:
        self._here.holds = True
        try:
            return work()
        finally:
            self._here.holds = False
            self._places.release()


def _present() -> int:
    """Return how many processors this process may use: those that it may run on, within the quota of its container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        # `max` is no number, and no limit.
        count = min(count, math.ceil(int(quota) / int(period)))
    return max(1, count)


processors = Processors(_present())
"""Those of this process."""
