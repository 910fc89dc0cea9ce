"""Answer a filter for one set of metadata that is in no table that filters look up, as that of an earlier version."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from app.domain import Metadata
from app.filters import And, Condition, Filter, Not, Operator, Or
from app.stores.attributes import ITEM_KINDS, Kind, Value, clean, document_attributes, moment, scalar, whole_list
from app.stores.filter_sql import comparable_kinds

_TEXTS = frozenset({Kind.TEXT, Kind.DATE_TEXT})
_ORDERS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.GT: gt,
    Operator.GTE: ge,
    Operator.LT: lt,
    Operator.LTE: le,
}


def passes(
    wanted: Filter,
    metadata: Metadata,
    *,
    document_id: str,
    source_type: str,
    created_at: datetime,
    updated_at: datetime,
) -> bool:
    """Return whether a document that was like this would pass the filter; it agrees with `FilterEvaluation`."""
    by_field: dict[str, set[tuple[Kind, Value]]] = {}
    rows = document_attributes(
        metadata, document_id=document_id, source_type=source_type, created_at=created_at, updated_at=updated_at
    )
    for field, kind, value in rows:
        by_field.setdefault(field, set()).add((kind, value))
    return _passes(wanted, by_field)


def _passes(wanted: Filter, rows: Mapping[str, set[tuple[Kind, Value]]]) -> bool:
    match wanted:
        case And(items):
            return all(_passes(item, rows) for item in items)
        case Or(items):
            return any(_passes(item, rows) for item in items)
        case Not(item):
            return not _passes(item, rows)
        case Condition(field, operator, value):
            return _meets(rows.get(clean(field), set()), operator, value)


def _meets(present: set[tuple[Kind, Value]], operator: Operator, value: Any) -> bool:
    kinds = {kind for kind, _ in present}
    match operator:
        case Operator.EXISTS:
            return bool(present) is value
        case Operator.NE | Operator.NIN:
            values = [value] if operator is Operator.NE else value
            return bool(kinds & comparable_kinds(values)) and not _is_one_of(present, values)
        case Operator.EQ | Operator.IN:
            return _is_one_of(present, [value] if operator is Operator.EQ else value)
        case Operator.PREFIX:
            return any(kind in _TEXTS and str(stored).startswith(clean(value)) for kind, stored in present)
        case Operator.CONTAINS | Operator.CONTAINS_ANY:
            return any(_contains(present, item) for item in ([value] if operator is Operator.CONTAINS else value))
        case Operator.CONTAINS_ALL:
            return Kind.LIST in kinds and all(_contains(present, item) for item in value)
        case _:
            return _is_in_order(present, operator, value)


def _is_one_of(present: set[tuple[Kind, Value]], values: Sequence[Any]) -> bool:
    wanted = ((Kind.LIST, whole_list(value)) if isinstance(value, list | tuple) else scalar(value) for value in values)
    return any(each in present for each in wanted)


def _contains(present: set[tuple[Kind, Value]], item: Any) -> bool:
    kind, stored = scalar(item)
    return (ITEM_KINDS[kind], stored) in present


def _is_in_order(present: set[tuple[Kind, Value]], operator: Operator, value: Any) -> bool:
    kind, wanted = scalar(value)
    kinds = _TEXTS if kind is Kind.TEXT else {kind}
    if kind is Kind.DATE_TEXT:
        kinds, wanted = {Kind.DATE}, moment(str(wanted)) or 0
    return any(kind in kinds and _ORDERS[operator](stored, wanted) for kind, stored in present)
