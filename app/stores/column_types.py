"""Column types, and names of constraints, that the tables of both databases share."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

CONSTRAINT_NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}

NULLABLE_JSON: JSON[Any] = JSON(none_as_null=True)
"""JSON whose `null` is SQL `NULL`."""


def utc_now() -> datetime:
    """Return the present time, with its zone."""
    return datetime.now(UTC)


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970; raises `TypeError` for a time without a zone."""
    return (moment - _EPOCH) // _MICROSECOND


class UtcTime(TypeDecorator[datetime]):
    """A point in time, kept as an integer so that every engine orders and compares it alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> int | None:
        """Return microseconds since 1970."""
        return None if value is None else microseconds(value)

    def process_result_value(self, value: Any, _dialect: Dialect) -> datetime | None:
        """Return the time in UTC."""
        return None if value is None else _EPOCH + value * _MICROSECOND
