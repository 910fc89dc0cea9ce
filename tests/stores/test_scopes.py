import numpy as np

from app.filters import Condition, Operator
from app.stores.port import Scope
from app.stores.scopes import ScopeCache


def condition(value: object) -> Condition:
    return Condition("a", Operator.EQ, value)


def test_a_scope_is_resolved_once_while_nothing_changes() -> None:
    cache, calls = ScopeCache(), []

    def resolved() -> Scope:
        calls.append(1)
        return Scope(np.arange(3), None)

    first = cache.get(1, condition("x"), resolved)
    assert cache.get(1, condition("x"), resolved) is first
    assert len(calls) == 1
    assert cache.get(2, condition("x"), resolved) is not first
    # A reader whose snapshot is older neither sees nor spoils what newer ones found.
    cache.get(1, condition("x"), resolved)
    assert len(calls) == 3
    cache.get(2, condition("x"), resolved)
    assert len(calls) == 3


def test_the_cache_forgets_the_least_recently_used_above_its_size() -> None:
    cache, calls = ScopeCache(), []

    def large() -> Scope:
        calls.append(1)
        return Scope(np.zeros(400_000, np.int64), None)

    for value in (1, 2, 1, 3):
        cache.get(1, condition(value), large)
    assert len(calls) == 3
    cache.get(1, condition(1), large)
    assert len(calls) == 3
    cache.get(1, condition(2), large)
    assert len(calls) == 4
    assert cache._bytes <= 8_000_000
