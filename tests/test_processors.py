"""No more works at once than there are processors; what waits for something else leaves its processor to others."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from app import processors as processors_module
from app.processors import Processors

SECONDS = 20


class Works:
    """Counts how many are inside at once; each stays until it is let go."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = self.most = 0
        self.entered = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def __call__(self) -> None:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.release()
        assert self.go.acquire(timeout=SECONDS)
        with self.lock:
            self.inside -= 1


def held(processors: Processors, work: Callable[[], None]) -> None:
    with processors.held():
        work()


def test_no_more_work_at_once_than_there_are_processors() -> None:
    processors, works = Processors(2), Works()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(held, processors, works)
        for _ in range(8):
            assert works.entered.acquire(timeout=SECONDS)
            works.go.release()
    assert works.most == 2


def test_who_waits_longest_is_next_also_while_others_come_by() -> None:
    processors, order = Processors(1), list[int]()
    threads = [threading.Thread(target=held, args=(processors, partial(order.append, number))) for number in range(6)]
    with processors.held():
        for place, thread in enumerate(threads):
            thread.start()
            while len(processors._places._waiting) <= place:
                time.sleep(0)
        assert processors.beside(int) is None
    # This thread comes by at once, and yet is the last.
    with processors.held():
        assert order == [0, 1, 2, 3, 4, 5]
    for thread in threads:
        thread.join()


def test_a_thread_that_has_a_processor_does_not_wait_for_another() -> None:
    processors = Processors(1)
    with processors.held(), processors.held():
        assert processors.beside(int) is None
    future = processors.beside(int)
    assert future is not None
    assert future.result(SECONDS) == 0


def test_work_beside_is_done_only_by_an_idle_processor() -> None:
    processors, works = Processors(2), Works()
    with processors.held():
        first = processors.beside(works)
        assert works.entered.acquire(timeout=SECONDS)
        assert processors.beside(int) is None
        works.go.release()
        assert first is not None
        assert processors.result(first) is None
        again = processors.beside(lambda: 7)
        assert again is not None
        assert processors.result(again) == 7


def test_a_lent_processor_works_for_others_until_it_is_taken_back() -> None:
    processors, works = Processors(1), Works()
    with ThreadPoolExecutor(1) as pool, processors.held():
        other = pool.submit(held, processors, works)
        assert not works.entered.acquire(timeout=0.05)
        with processors.lent():
            assert works.entered.acquire(timeout=SECONDS)
            works.go.release()
        other.result(SECONDS)
        assert processors.beside(int) is None


def test_work_beside_may_lend_its_processor_too() -> None:
    processors = Processors(1)
    began, end = threading.Event(), threading.Event()

    def waits() -> None:
        with processors.lent():
            began.set()
            assert end.wait(SECONDS)

    future = processors.beside(waits)
    assert future is not None
    assert began.wait(SECONDS)
    with processors.held():
        end.set()
    future.result(SECONDS)


def test_an_error_gives_the_processor_back() -> None:
    processors = Processors(1)
    with pytest.raises(ZeroDivisionError), processors.held():
        raise ZeroDivisionError
    failing = processors.beside(lambda: 1 // 0)
    assert failing is not None
    with pytest.raises(ZeroDivisionError):
        failing.result(SECONDS)
    with processors.held(), pytest.raises(ZeroDivisionError), processors.lent():
        raise ZeroDivisionError
    assert processors.beside(int) is not None


def test_several_processes_share_the_processors_and_each_has_one() -> None:
    processors = Processors(4)
    processors.share(2)
    assert processors.count == 2
    with processors.held():
        assert processors.beside(int) is not None
    alone = Processors(2)
    alone.share(8)
    with alone.held():
        assert alone.beside(int) is None


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000\n", 4), ("150000 100000\n", 2), ("5000 100000\n", 1), ("strange", 4)]
)
def test_the_quota_of_a_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, expected: int
) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota, encoding="ascii")
    monkeypatch.setattr(processors_module, "_QUOTA", file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert processors_module._present() == expected
