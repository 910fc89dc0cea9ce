from dataclasses import dataclass

import pytest

from app.catalog.principal import ADMIN, Principal, Role
from app.catalog.rate_limits import RateLimits
from app.errors import TooManyRequests


@dataclass
class Stopwatch:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def _principal(key_id: str, requests_per_minute: int | None) -> Principal:
    return Principal(key_id, Role.ASK, frozenset({"col_a"}), None, requests_per_minute)


def test_a_key_may_use_its_minute_at_once_and_then_waits_for_the_next_request() -> None:
    stopwatch = Stopwatch()
    limits = RateLimits(stopwatch)
    principal = _principal("key_a", 6)
    for _ in range(6):
        limits.check(principal)
    with pytest.raises(TooManyRequests) as refused:
        limits.check(principal)
    assert refused.value.retry_after == pytest.approx(10)
    stopwatch.seconds += 9.9
    with pytest.raises(TooManyRequests):
        limits.check(principal)
    stopwatch.seconds += 0.2
    limits.check(principal)


def test_an_idle_key_saves_up_no_more_than_a_minute() -> None:
    stopwatch = Stopwatch()
    limits = RateLimits(stopwatch)
    principal = _principal("key_a", 2)
    limits.check(principal)
    stopwatch.seconds += 3600
    limits.check(principal)
    limits.check(principal)
    with pytest.raises(TooManyRequests):
        limits.check(principal)


def test_one_key_does_not_use_up_anothers_rate() -> None:
    limits = RateLimits(Stopwatch())
    limits.check(_principal("key_a", 1))
    limits.check(_principal("key_b", 1))
    with pytest.raises(TooManyRequests):
        limits.check(_principal("key_a", 1))


def test_the_admin_and_keys_without_a_rate_are_never_refused() -> None:
    limits = RateLimits(Stopwatch())
    for _ in range(1000):
        limits.check(ADMIN)
        limits.check(_principal("key_a", None))
