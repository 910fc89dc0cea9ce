"""Resolve what a search may see, and remember it while nothing changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from app.filters import And, Condition, Filter, Not, Operator
from app.stores.filter_sql import FilterEvaluation
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
_CACHED_BYTES = 8_000_000


def combined(search_filter: Filter | None, document_ids: Sequence[str] | None) -> Filter | None:
    """Return the filter and the list of documents as one filter."""
    if document_ids is None:
        return search_filter
    named = Condition("$document_id", Operator.IN, tuple(document_ids))
    return named if search_filter is None else And((search_filter, named))


def without(search_filter: Filter | None, document_ids: Sequence[str]) -> Filter | None:
    """Return the filter with some documents left out, if any."""
    if not document_ids:
        return search_filter
    others = Not(Condition("$document_id", Operator.IN, tuple(document_ids)))
    return others if search_filter is None else And((search_filter, others))


def resolve(connection: Connection, wanted: Filter) -> Scope:
    """Return the ready documents that pass the filter, with its warnings."""
    evaluation = FilterEvaluation(connection)
    keys = evaluation.ready_document_keys(wanted)
    keys.flags.writeable = False
    return Scope(keys, wanted, evaluation.warnings)


class ScopeCache:
    """Keep the scopes of one state of the documents, up to some megabytes, the least recently used goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._bytes = 0

    def get(self, version: int, wanted: Filter, resolved: Callable[[], Scope]) -> Scope:
        """Return the scope of the filter when the `scope` counter stands at `version`."""
        # The representation tells `1` from `true`, which are equal in Python.
        name = repr(wanted)
        with self._lock:
            if version > self._version:
                self._version, self._bytes = version, 0
                self._scopes.clear()
            found = self._scopes.get(name) if version == self._version else None
            if found is not None:
                self._scopes.move_to_end(name)
                return found
        scope = resolved()
        with self._lock:
            if version == self._version and name not in self._scopes:
                self._scopes[name] = scope
                self._bytes += _size(name, scope)
                while self._bytes > _CACHED_BYTES:
                    self._bytes -= _size(*self._scopes.popitem(last=False))
        return scope


def _size(name: str, scope: Scope) -> int:
    keys = 0 if scope.document_keys is None else scope.document_keys.nbytes
    # An entry's own weight keeps many empty scopes from counting as nothing.
    return 500 + len(name) + keys
