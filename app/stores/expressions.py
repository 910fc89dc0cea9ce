"""The SQL that another engine would write differently."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Dialect,
    Double,
    Function,
    LargeBinary,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import Insert, insert

_Number = TypeVar("_Number", np.int64, np.float64)


class _ListAsJson(TypeDecorator[Sequence[Any]]):
    """A list of strings or numbers, bound as one JSON text: any count of them, and one statement for all counts."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[Any] | None, _dialect: Dialect) -> str:
        return stored_list(value)


def stored_list(values: Sequence[Any] | None) -> str:
    """Return a list of strings or numbers as it is bound."""
    return json.dumps(values)


def one_of(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    """Return whether the column equals one of the strings or numbers of a list, the parameter of that name."""
    listed = func.json_each(bindparam(parameter, type_=_ListAsJson())).table_valued("value")
    return column.in_(select(listed.c.value))


def insert_or_skip(table: Table) -> Insert:
    """Return an insert that leaves a row that exists as it is."""
    return insert(table).on_conflict_do_nothing()


def cosine_distance(column: ColumnElement[bytes], parameter: str) -> Function[float]:
    """Return sqlite-vec's `1 - cosine` to a stored vector, the parameter of that name.

    A zero vector, which has no direction, is at distance 1 from every other.
    """
    distance = func.vec_distance_cosine(column, bindparam(parameter, type_=LargeBinary()))
    return func.coalesce(distance, 1.0, type_=Double())


def gathered(column: ColumnElement[Any]) -> Function[str | None]:
    """Return the column's values as one text, which `numbers` reads; `None` when there are none.

    One row for all: to fetch 50,000 rows took 25 ms, and the interpreter's lock for each, where this takes 3 ms.
    """
    return func.group_concat(column)


def numbers(gathered_text: str | None, dtype: type[_Number]) -> NDArray[_Number]:
    """Return the array of what `gathered` returned."""
    return np.fromstring(gathered_text, dtype, sep=",") if gathered_text else np.zeros(0, dtype)


def stored_vector(vector: NDArray[np.float32]) -> bytes:
    """Return a vector as it is stored: little-endian float32."""
    return vector.astype("<f4", copy=False).tobytes()
