import threading

from app.turn import Turn


def _start(turn: Turn, name: int, order: list[int], *, timeout: float = 30) -> threading.Thread:
    """Start a thread that waits for the turn, and return when it waits."""

    def take() -> None:
        if turn.acquire(timeout):
            order.append(name)
            turn.release()

    waiting = len(turn._waiting)
    thread = threading.Thread(target=take)
    thread.start()
    while len(turn._waiting) == waiting and thread.is_alive():
        thread.join(0.001)
    return thread


def test_the_turn_goes_to_who_waits_longest_even_if_another_comes_back_at_once() -> None:
    turn, order = Turn(), []
    assert turn.acquire(1)
    threads = [_start(turn, name, order) for name in range(10)]
    turn.release()
    assert turn.acquire(30)
    order.append(99)
    turn.release()
    for thread in threads:
        thread.join(30)
    assert order == [*range(10), 99]


def test_one_holds_the_turn_at_a_time() -> None:
    turn = Turn()
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            assert turn.acquire(30)
            inside += 1
            most = max(most, inside)
            inside -= 1
            turn.release()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (inside, most) == (0, 1)


def test_who_gives_up_waiting_does_not_keep_the_turn_from_the_next() -> None:
    turn, order = Turn(), []
    assert turn.acquire(1)
    impatient = _start(turn, 1, order, timeout=0.05)
    patient = _start(turn, 2, order)
    impatient.join(30)
    turn.release()
    patient.join(30)
    assert order == [2]
    assert turn.acquire(1)
