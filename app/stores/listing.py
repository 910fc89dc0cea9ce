"""List documents page by page, by key, so that a page is stable while others are added."""

import base64
import binascii
import struct
import zlib
from collections.abc import Sequence

from sqlalchemy import Connection, select

from app.errors import InvalidCursor
from app.filters import Filter
from app.stores.documents import as_document
from app.stores.expressions import one_of
from app.stores.filter_sql import FilterEvaluation
from app.stores.port import DocumentPage
from app.stores.schema import documents


def list_documents(
    connection: Connection, scope_filter: Filter | None, limit: int, cursor: str | None, states: Sequence[str]
) -> DocumentPage:
    """Return up to `limit` documents after the cursor; raises `InvalidCursor` for a cursor that is none of ours."""
    after = 0 if cursor is None else _key_of(cursor)
    wanted = select(documents).order_by(documents.c.key).limit(limit + 1)
    values: dict[str, list[int]] = {}
    if scope_filter is None:
        wanted = wanted.where(documents.c.key > after)
        if states:
            wanted = wanted.where(documents.c.state.in_(states))
    else:
        passing = FilterEvaluation(connection).document_keys(scope_filter, states)
        wanted = wanted.where(one_of(documents.c.key, "keys"))
        values["keys"] = passing[passing > after][: limit + 1].tolist()
    found = [as_document(row) for row in connection.execute(wanted, values)]
    page = found[:limit]
    return DocumentPage(tuple(page), _cursor_after(page[-1].key) if len(found) > limit else None)


def _cursor_after(key: int) -> str:
    packed = struct.pack(">q", key)
    return base64.urlsafe_b64encode(packed + struct.pack(">I", zlib.crc32(packed))).decode()


def _key_of(cursor: str) -> int:
    try:
        packed = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        key, checksum = struct.unpack(">qI", packed)
    except (UnicodeEncodeError, binascii.Error, struct.error):
        raise InvalidCursor.of_another_list() from None
    if zlib.crc32(packed[:8]) != checksum:
        raise InvalidCursor.of_another_list()
    return int(key)
