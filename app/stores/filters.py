"""Read a filter as callers write it: strict, with a JSON pointer to whatever is wrong."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.errors import FieldError, InvalidRequest, UnknownField
from app.filters import And, Condition, Filter, Not, Operator, Or
from app.stores.attributes import clean

MAXIMUM_DEPTH = 32
MAXIMUM_CONDITIONS = 2000
RESERVED_FIELDS = ("$created_at", "$document_id", "$source_type", "$updated_at")

_CONDITION = ("field", "op", "value")
_COMBINATIONS = ("and", "or", "not")
_SHAPES = '{"field", "op", "value"}, {"and": [...]}, {"or": [...]} or {"not": {...}}'
_OF_LISTS = frozenset({Operator.IN, Operator.NIN, Operator.CONTAINS_ANY, Operator.CONTAINS_ALL})
_OF_ORDER = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})
_OF_EQUALITY = frozenset({Operator.EQ, Operator.NE})


def parse_filter(raw: Any, pointer: str = "/filter") -> Filter:
    """Return the filter that a JSON value says.

    `pointer` is where it stands in the request. Raises `UnknownField` for a name that does not exist and
    `InvalidRequest` for anything else that is wrong, nesting above 32 included.
    """
    parsed = _parse(raw, pointer, depth=0)
    if _conditions(parsed) > MAXIMUM_CONDITIONS:
        detail = f"a filter has at most {MAXIMUM_CONDITIONS} conditions; one `in` takes the place of many `eq`"
        raise _invalid(pointer, "too_many_conditions", detail)
    return parsed


def _parse(raw: Any, pointer: str, depth: int) -> Filter:
    if not isinstance(raw, Mapping):
        raise _invalid(pointer, "wrong_type", f"a filter is an object: {_SHAPES}")
    _check_names(raw, pointer)
    present = [name for name in _COMBINATIONS if name in raw]
    if len(present) > 1 or (present and len(raw) > 1):
        raise _invalid(pointer, "ambiguous", f"one object is exactly one of {_SHAPES}")
    if not present:
        return _condition(raw, pointer)
    if depth == MAXIMUM_DEPTH:
        raise _invalid(pointer, "too_deep", f"a filter nests at most {MAXIMUM_DEPTH} levels deep")
    name = present[0]
    inner = f"{pointer}/{name}"
    if name == "not":
        return Not(_parse(raw[name], inner, depth + 1))
    if not _is_list(raw[name]):
        raise _invalid(inner, "wrong_type", f"`{name}` takes a list of filters")
    items = tuple(_parse(item, f"{inner}/{index}", depth + 1) for index, item in enumerate(raw[name]))
    return And(items) if name == "and" else Or(items)


def _check_names(raw: Mapping[Any, Any], pointer: str) -> None:
    known = (*_CONDITION, *_COMBINATIONS)
    for name in raw:
        if name not in known:
            raise _unknown(f"{pointer}/{_escaped(str(name))}", "a part of a filter", str(name), known)


def _condition(raw: Mapping[str, Any], pointer: str) -> Condition:
    for name in _CONDITION:
        if name not in raw:
            raise _invalid(f"{pointer}/{name}", "missing", f"a condition needs `{name}`")
    field = _field(raw["field"], f"{pointer}/field")
    operator = _operator(raw["op"], f"{pointer}/op")
    return Condition(field, operator, _value(operator, raw["value"], f"{pointer}/value"))


def _field(raw: Any, pointer: str) -> str:
    if not isinstance(raw, str) or not raw:
        raise _invalid(pointer, "wrong_type", "`field` is the name of a metadata field, with dots into nested objects")
    if raw.startswith("$") and raw not in RESERVED_FIELDS:
        raise _unknown(pointer, "a field of the service", raw, RESERVED_FIELDS)
    return raw


def _operator(raw: Any, pointer: str) -> Operator:
    known = [operator.value for operator in Operator]
    if not isinstance(raw, str):
        raise _invalid(pointer, "wrong_type", f"`op` is one of {', '.join(known)}")
    if raw not in known:
        raise _unknown(pointer, "an operator", raw, known)
    return Operator(raw)


def _conditions(parsed: Filter) -> int:
    match parsed:
        case And(items) | Or(items):
            return sum(map(_conditions, items))
        case Not(item):
            return _conditions(item)
        case Condition():
            return 1


def _value(operator: Operator, raw: Any, pointer: str) -> Any:
    if operator is Operator.EXISTS:
        return _checked(isinstance(raw, bool), raw, pointer, "`exists` takes true or false")
    if operator is Operator.PREFIX:
        return _checked(isinstance(raw, str), raw, pointer, "`prefix` takes a string")
    if operator in _OF_ORDER:
        comparable = _is_scalar(raw) and not isinstance(raw, bool)
        return _checked(comparable, raw, pointer, f"`{operator}` takes a number, an RFC 3339 date or a string")
    if operator in _OF_LISTS or (operator in _OF_EQUALITY and _is_list(raw)):
        return _list(operator, raw, pointer)
    hint = "; use `exists` to find a missing field" if raw is None else ""
    return _checked(_is_scalar(raw), raw, pointer, f"`{operator}` takes a string, a number, true or false{hint}")


def _list(operator: Operator, raw: Any, pointer: str) -> tuple[Any, ...]:
    expected = f"`{operator}` takes a list of strings, numbers, true and false"
    _checked(_is_list(raw), raw, pointer, expected)
    return tuple(_checked(_is_scalar(item), item, f"{pointer}/{index}", expected) for index, item in enumerate(raw))


def _checked(holds: bool, value: Any, pointer: str, expected: str) -> Any:
    if not holds:
        raise _invalid(pointer, "wrong_type", expected)
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _invalid(pointer: str, code: str, detail: str) -> InvalidRequest:
    return InvalidRequest(f"the filter is not valid: {detail}", errors=[FieldError(pointer, code, detail)])


def _unknown(pointer: str, what: str, name: str, known: Iterable[str]) -> UnknownField:
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    detail = f"{name!r} is not {what}; it is one of {', '.join(names)}"
    return UnknownField(
        f"the filter is not valid: {detail}",
        hint=f"did you mean `{nearest[0]}`?" if nearest else None,
        errors=[FieldError(pointer, "unknown_field", detail)],
    )


def _escaped(name: str) -> str:
    return clean(name).replace("~", "~0").replace("/", "~1")
