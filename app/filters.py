"""The conditions that a caller puts on fields of documents, as a tree."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias


class Operator(StrEnum):
    """What a filter condition asks of a field."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    EXISTS = "exists"
    CONTAINS = "contains"
    CONTAINS_ANY = "contains_any"
    CONTAINS_ALL = "contains_all"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Condition:
    """One field, one operator, one value."""

    field: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    """All of these hold; an empty one always does."""

    items: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of these holds; an empty one never does."""

    items: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """This does not hold."""

    item: "Filter"


Filter: TypeAlias = Condition | And | Or | Not
