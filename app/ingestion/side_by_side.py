"""Do several slow calls at once, and stay awake while they last."""

import threading
from collections.abc import Callable, Generator, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

AWAKE_SECONDS = 0.25

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def side_by_side(
    ask: Callable[[_Asked], _Answer], asked: Sequence[_Asked], width: int
) -> Generator[tuple[_Asked, _Answer] | None, None, None]:
    """Yield each thing asked with its answer as answers come, and `None` four times a second while none does.

    At most `width` calls are made at once; none begins after the iterator is closed. An exception of `ask` is raised.
    """
    waiting: SimpleQueue[_Asked] = SimpleQueue()
    answers: SimpleQueue[tuple[_Asked, _Answer] | BaseException] = SimpleQueue()
    closed = threading.Event()
    for thing in asked:
        waiting.put(thing)

    def work() -> None:
        while not closed.is_set():
            try:
                thing = waiting.get_nowait()
            except Empty:
                return
            try:
                answers.put((thing, ask(thing)))
            except BaseException as error:  # noqa: BLE001 - raised again where answers are awaited
                answers.put(error)

    # Daemons, unlike a pool's threads: a process that stops does not wait for a server that does not answer.
    for number in range(min(width, len(asked))):
        threading.Thread(target=work, name=f"side-by-side-{number}", daemon=True).start()
    missing = len(asked)
    try:
        while missing:
            try:
                answer = answers.get(timeout=AWAKE_SECONDS)
            except Empty:
                yield None
                continue
            if isinstance(answer, BaseException):
                raise answer
            missing -= 1
            yield answer
    finally:
        closed.set()
