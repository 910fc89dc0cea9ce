"""Keep canonical texts in segments: a piece of a 50 MB text costs what it needs, and no statement binds all of it."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from app.domain import Page
from app.stores.schema import pages, texts

SEGMENT_CHARACTERS = 65_536
_SEGMENTS_AT_ONCE = 16
_NO_END = 2**62

_SEGMENTS = (
    select(texts.c.text)
    .where(
        texts.c.document_key == bindparam("document_key"),
        texts.c.start >= bindparam("first"),
        texts.c.start < bindparam("end"),
    )
    .order_by(texts.c.start)
)


def write_text(connection: Connection, document_key: int, text: str) -> None:
    """Replace a document's text."""
    connection.execute(delete(texts).where(texts.c.document_key == document_key))
    starts = range(0, len(text), SEGMENT_CHARACTERS)
    for first in range(0, len(starts), _SEGMENTS_AT_ONCE):
        segments = [
            {"document_key": document_key, "start": start, "text": text[start : start + SEGMENT_CHARACTERS]}
            for start in starts[first : first + _SEGMENTS_AT_ONCE]
        ]
        connection.execute(insert(texts), segments)


def read_text(connection: Connection, document_key: int, start: int, end: int | None) -> str:
    """Return `[start, end)` of a document's text, as far as the text goes."""
    first = start - start % SEGMENT_CHARACTERS
    end = _NO_END if end is None else max(end, start)
    asked = {"document_key": document_key, "first": first, "end": end}
    return "".join(connection.scalars(_SEGMENTS, asked))[start - first : end - first]


def write_pages(connection: Connection, document_key: int, placed: Sequence[Page]) -> None:
    """Replace a document's page map."""
    connection.execute(delete(pages).where(pages.c.document_key == document_key))
    rows = [{"document_key": document_key, "number": p.number, "start": p.start, "end": p.end} for p in placed]
    if rows:
        connection.execute(insert(pages), rows)


def read_pages(connection: Connection, document_key: int) -> list[Page]:
    """Return a document's page map, by number; empty for a text without pages."""
    placed = select(pages).where(pages.c.document_key == document_key).order_by(pages.c.number)
    return [Page(row.number, row.start, row.end) for row in connection.execute(placed)]
