"""Cut lists into pages, newest first, that stay stable while rows are added."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Table, tuple_

from app.errors import InvalidCursor


@dataclass(frozen=True, slots=True)
class NewestFirst:
    """Page a table that has the columns `created_at` and `id`; a cursor is of one table and tells only of its row."""

    table: Table

    def page(self, query: Select[Any], limit: int, cursor: str | None) -> Select[Any]:
        """Return the query of one page and one row more; raises `InvalidCursor` for a cursor that is none of ours."""
        position: ColumnElement[Any] = tuple_(self.table.c.created_at, self.table.c.id)
        if cursor is not None:
            query = query.where(position < self._decode(cursor))
        return query.order_by(self.table.c.created_at.desc(), self.table.c.id.desc()).limit(limit + 1)

    def split(self, rows: Sequence[RowMapping], limit: int) -> tuple[Sequence[RowMapping], str | None]:
        """Return the page's rows and the cursor of the next page, if there is one."""
        if len(rows) <= limit:
            return rows, None
        last = rows[limit - 1]
        return rows[:limit], self._encode(last["created_at"], last["id"])

    def _encode(self, created_at: datetime, row_id: str) -> str:
        text = json.dumps([self.table.name, created_at.isoformat(), row_id], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def _decode(self, cursor: str) -> tuple[datetime, str]:
        try:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            table, created_at, row_id = json.loads(text)
            if table != self.table.name or not isinstance(row_id, str):
                raise ValueError(table)
            moment = datetime.fromisoformat(created_at)
            if moment.tzinfo is None:
                raise ValueError(created_at)
        except (binascii.Error, ValueError, TypeError) as error:
            raise InvalidCursor.of_another_list() from error
        return moment, row_id
