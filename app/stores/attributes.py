"""Lay a document's metadata out as rows that filters look up.

Nested objects become dotted fields (`author.name`); `null` is a missing field. A list has one row for the whole and
one for each element. A string that is an RFC 3339 date has a second row with its moment, since it is equal as text
but ordered as a date.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any, TypeAlias

from app.domain import Metadata
from app.stores.column_types import microseconds

Value: TypeAlias = str | int | float | bytes
Attribute: TypeAlias = tuple[str, "Kind", Value]

_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**63 - 1
_DATE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
)


class Kind(IntEnum):
    """What a row's value is; filters compare values of one kind only."""

    TEXT = 0
    DATE_TEXT = 1
    DATE = 2
    NUMBER = 3
    BOOLEAN = 4
    LIST = 5
    ITEM_TEXT = 6
    ITEM_NUMBER = 7
    ITEM_BOOLEAN = 8


ITEM_KINDS = {Kind.TEXT: Kind.ITEM_TEXT, Kind.DATE_TEXT: Kind.ITEM_TEXT, Kind.NUMBER: Kind.ITEM_NUMBER}
ITEM_KINDS |= {Kind.BOOLEAN: Kind.ITEM_BOOLEAN}


def document_attributes(
    metadata: Metadata, *, document_id: str, source_type: str, created_at: datetime, updated_at: datetime
) -> set[Attribute]:
    """Return every row of a document, the `$` fields included."""
    fields = dict(_flat(metadata))
    fields["$document_id"] = document_id
    fields["$source_type"] = source_type
    fields["$created_at"] = created_at.isoformat().replace("+00:00", "Z")
    fields["$updated_at"] = updated_at.isoformat().replace("+00:00", "Z")
    return {(field, *row) for field, value in fields.items() for row in _rows(value)}


def scalar(value: str | float) -> tuple[Kind, Value]:
    """Return a value's kind and how it is stored; a filter's value goes through the same door as metadata."""
    if isinstance(value, str):
        text = clean(value)
        return (Kind.TEXT if moment(text) is None else Kind.DATE_TEXT), text
    if isinstance(value, bool):
        return Kind.BOOLEAN, int(value)
    if isinstance(value, int) and not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
        return Kind.NUMBER, _nearest_float(value)
    return Kind.NUMBER, value


def whole_list(values: Sequence[Any]) -> bytes:
    """Return what two lists of scalars share exactly when they are equal, empty for a list that holds anything else.

    `1` and `1.0` are equal, `1` and `true` are not.
    """
    if not all(_is_scalar(value) for value in values):
        return b""
    comparable = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return hashlib.sha256(json.dumps([clean(v) if isinstance(v, str) else v for v in comparable]).encode()).digest()


def moment(text: str) -> int | None:
    """Return the microseconds since 1970 of an RFC 3339 date or time, `None` for any other text.

    A day begins at midnight and a time without an offset is read, both in UTC.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    time, zone = match["time"] or "00:00:00", match["zone"] or "Z"
    try:
        return microseconds(datetime.fromisoformat(f"{match['day']}T{time}{zone.upper()}"))
    except ValueError:
        return None


def clean(text: str) -> str:
    """Return the text without NUL and lone surrogates, which no stored text has."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()


def _flat(metadata: Metadata) -> Iterator[tuple[str, Any]]:
    """Yield dotted fields and values; names that begin with `$` are the service's own."""
    open_objects: list[tuple[str, Metadata]] = [("", metadata)]
    while open_objects:
        prefix, members = open_objects.pop()
        for name, value in members.items():
            field = prefix + clean(name)
            if isinstance(value, Mapping):
                open_objects.append((f"{field}.", value))
            elif not field.startswith("$"):
                yield field, value


def _rows(value: Any) -> Iterator[tuple[Kind, Value]]:
    if isinstance(value, list | tuple):
        yield Kind.LIST, whole_list(value)
        for kind, stored in map(scalar, filter(_is_scalar, value)):
            yield ITEM_KINDS[kind], stored
    elif _is_scalar(value):
        kind, stored = scalar(value)
        yield kind, stored
        if isinstance(stored, str) and (when := moment(stored)) is not None:
            yield Kind.DATE, when


def _is_scalar(value: object) -> bool:
    # JSON has no NaN, but Python reads one; it is equal to nothing, itself included.
    return isinstance(value, str | bool | int) or (isinstance(value, float) and not math.isnan(value))


def _nearest_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
