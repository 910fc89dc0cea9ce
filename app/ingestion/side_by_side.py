"""Do several slow calls at once, and stay awake while they last."""

import threading
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

AWAKE_SECONDS = 0.25

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def side_by_side(
    ask: Callable[[_Asked], _Answer], asked: Sequence[_Asked], width: int
) -> Generator[tuple[_Asked, _Answer] | None, None, None]:
    """Yield each thing asked with its answer as answers come, and `None` four times a second while none does.

    At most `width` calls are made at once, and a next one begins when the caller has taken an answer and wants more.
    An exception of `ask` is raised.
    """
    waiting: SimpleQueue[tuple[_Asked] | None] = SimpleQueue()
    answers: SimpleQueue[tuple[_Asked, _Answer] | Exception] = SimpleQueue()

    def work() -> None:
        while (held := waiting.get()) is not None:
            (thing,) = held
            try:
                answers.put((thing, ask(thing)))
            except Exception as error:  # noqa: BLE001 - raised again where answers are awaited
                answers.put(error)

    remaining = iter(asked)
    width = min(width, len(asked))
    for number in range(width):
        waiting.put((next(remaining),))
        # A daemon, unlike a pool's thread: a process that stops does not wait for a server that does not answer.
        threading.Thread(target=work, name=f"side-by-side-{number}", daemon=True).start()
    missing = len(asked)
    try:
        while missing:
            try:
                answer = answers.get(timeout=AWAKE_SECONDS)
            except Empty:
                yield None
                continue
            if isinstance(answer, Exception):
                raise answer
            missing -= 1
            yield answer
            for thing in islice(remaining, 1):
                waiting.put((thing,))
    finally:
        for _ in range(width):
            waiting.put(None)
