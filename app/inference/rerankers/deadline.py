"""Keep a reranker within its time: what is late is told, and what has not begun is dropped."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from app.errors import RerankUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class Deadline:
    """The end of a time budget that begins now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left, above 0; raises `RerankUnavailable` where none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> RerankUnavailable:
        """Return the error of a reranker that is late."""
        return RerankUnavailable(
            f"The reranker took longer than {self._seconds:g} s",
            hint="lower rerank.candidates or raise rerank.timeout_seconds",
        )


def each_in_time(
    pool: Executor, work: Callable[[Item], Result], items: Sequence[Item], deadline: Deadline
) -> list[Result]:
    """Return the result of each item in its place, done side by side; raises `RerankUnavailable` past the deadline."""
    futures = [pool.submit(work, item) for item in items]
    try:
        return [future.result(deadline.left()) for future in futures]
    except TimeoutError:
        raise deadline.missed() from None
    finally:
        for future in futures:
            future.cancel()
