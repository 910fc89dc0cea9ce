"""A query on the driver gives what SQLAlchemy gives, but rows as they are stored; none is run without its values."""

import pytest
from sqlalchemy import bindparam, select

from app.stores.connection import Database
from app.stores.direct import DirectQuery
from app.stores.schema import counters

_ABOVE = (
    select(counters.c.name, counters.c.value)
    .where(counters.c.value >= bindparam("least"), counters.c.name != "revision")
    .order_by(counters.c.name)
    .limit(bindparam("limit"))
)


def test_rows_are_those_that_the_query_gives(database: Database) -> None:
    query = DirectQuery(_ABOVE)
    with database.reading() as connection:
        for least, limit in ((0, 10), (0, 1), (10**6, 10)):
            values = {"least": least, "limit": limit}
            assert query.rows(connection, **values) == [tuple(row) for row in connection.execute(_ABOVE, values)]


def test_a_value_that_is_not_given_is_no_null(database: Database) -> None:
    with database.reading() as connection, pytest.raises(KeyError, match="least"):
        DirectQuery(_ABOVE).rows(connection, limit=1)
