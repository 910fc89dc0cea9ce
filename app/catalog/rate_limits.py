"""Refuse the requests that a key sends above its rate."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.catalog.principal import Principal
from app.errors import TooManyRequests


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimits:
    """One token bucket per key, as large as its requests of one minute.

    Buckets are in memory, so that no request writes; with N server processes a key may reach N times its rate.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}

    def check(self, principal: Principal) -> None:
        """Count one request; raises `TooManyRequests`, with the seconds to wait, for one above the key's rate."""
        rate = principal.requests_per_minute
        if rate is None or principal.key_id is None:
            return
        per_second = rate / 60
        with self._lock:
            now = self._clock()
            bucket = self._buckets.setdefault(principal.key_id, _Bucket(rate, now))
            bucket.tokens = min(float(rate), bucket.tokens + (now - bucket.filled_at) * per_second)
            bucket.filled_at = now
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                return
            missing = 1 - bucket.tokens
        raise TooManyRequests(
            f"the key may send {rate} requests a minute",
            hint="wait as Retry-After says, or ask the collection's owner for a higher rate",
            retry_after=missing / per_second,
        )
