from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import sqlite

from app.stores.column_types import UtcTime


def test_a_time_comes_back_to_the_microsecond_in_utc() -> None:
    column = UtcTime()
    written = datetime(2031, 5, 6, 7, 8, 9, 123457, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    stored = column.process_bind_param(written, sqlite.dialect())
    read = column.process_result_value(stored, sqlite.dialect())
    assert read == written
    assert read is not None
    assert read.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        UtcTime().process_bind_param(datetime(2031, 1, 1), sqlite.dialect())
