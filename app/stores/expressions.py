"""The SQL that another engine would write differently."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Double, Function, Table, func, select
from sqlalchemy.dialects.sqlite import Insert, insert

from app.stores.port import Keys

_Number = TypeVar("_Number", np.int64, np.float64)


def one_of(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """Return whether the column equals one of the strings or numbers; any count of them is one bound value."""
    listed = func.json_each(json.dumps(values)).table_valued("value")
    return column.in_(select(listed.c.value))


def key_in(column: ColumnElement[int], keys: Keys) -> ColumnElement[bool]:
    """Return whether the column is one of the keys."""
    return one_of(column, keys.tolist())


def insert_or_skip(table: Table) -> Insert:
    """Return an insert that leaves a row that exists as it is."""
    return insert(table).on_conflict_do_nothing()


def cosine_distance(column: ColumnElement[bytes], vector: NDArray[np.float32]) -> Function[float]:
    """Return sqlite-vec's `1 - cosine`; a zero vector, which has no direction, is at distance 1 from all."""
    return func.coalesce(func.vec_distance_cosine(column, stored_vector(vector)), 1.0, type_=Double())


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
