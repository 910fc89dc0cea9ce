import threading
from contextlib import closing

import pytest

from app.ingestion.side_by_side import side_by_side


def test_everything_asked_is_answered_once() -> None:
    answers = [answer for answer in side_by_side(lambda number: number * 2, range(50), 4) if answer is not None]
    assert sorted(answers) == [(number, number * 2) for number in range(50)]
    assert list(side_by_side(str, [], 4)) == []


def test_so_many_calls_are_made_at_once_and_the_caller_stays_awake() -> None:
    together = threading.Barrier(3)
    release = threading.Event()

    def ask(number: int) -> int:
        together.wait(10)
        release.wait(10)
        return number

    answers = side_by_side(ask, range(3), 3)
    assert next(answers) is None
    assert together.broken is False
    release.set()
    assert len([answer for answer in answers if answer is not None]) == 3


def test_what_a_call_raises_is_raised_and_no_other_begins() -> None:
    begun: list[int] = []

    def ask(number: int) -> int:
        begun.append(number)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), closing(side_by_side(ask, range(100), 1)) as answers:
        next(answers)
    assert begun == [0]
