"""The base of every body: requests refuse unknown names and guess what was meant, answers may grow."""

import difflib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean `x`?` for the nearest known name, or nothing when none is near."""
    nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean `{nearest[0]}`?" if nearest else ""


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Return the sentence about a name that nobody knows."""
    names = sorted(known)
    allowed = f"; known are {', '.join(f'`{known_name}`' for known_name in names)}" if names else ""
    return f"`{name[:100]}` is not known here{did_you_mean(name, names) or allowed}"


class Request(BaseModel):
    """A request body: no unknown names, no conversions between JSON types, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_names(cls, value: Any) -> Any:
        """Raise one error that holds every unknown name of this object."""
        if not isinstance(value, dict):
            return value
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = {name: unknown_name(name, known) for name in value if name not in known}
        if unknown:
            raise PydanticCustomError("unknown_names", "unknown names", {"names": unknown})
        return value


class Reply(BaseModel):
    """An answer body; made from the object of the same members where there is one."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or "T" not in value.upper():
        raise PydanticCustomError("timestamp", "must be an RFC 3339 time such as 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise PydanticCustomError("timestamp", "must end in Z or an offset such as +02:00")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("timestamp", "must be an RFC 3339 time such as 2026-01-31T12:00:00Z") from None


Timestamp = Annotated[
    datetime,
    PlainValidator(_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-12-31T23:59:59Z"]}),
]
"""An RFC 3339 time with an offset, as UTC."""


def _any_string(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    return value


AnyText = Annotated[str, PlainValidator(_any_string), WithJsonSchema({"type": "string"})]
"""A string of any code points, lone surrogates too, which pydantic's own check may refuse."""


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be a JSON object")
    return value


FilterObject = Annotated[
    dict[str, Any], BeforeValidator(_json_object), WithJsonSchema({"type": "object", "title": "Filter"})
]
"""A filter as it was sent; the grammar is checked where it is compiled. The specification refers to `Filter`."""

JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object), WithJsonSchema({"type": "object"})]
"""A JSON object with names of the caller's choice."""
