"""Where documents come from: URLs, what was last known of them, and when they are fetched again."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.catalog.database import Database
from app.catalog.paging import NewestFirst
from app.catalog.tables import sources
from app.errors import NotFound
from app.stores.column_types import utc_now

CLAIM_SECONDS = 900
"""A source that was due and whose fetch has not ended is due again after this time."""

LONGEST_BACKOFF_SECONDS = 86_400
"""Failures make the interval grow up to this, where it is not longer by itself."""

_BATCH = 500
_newest_first = NewestFirst(sources)


class SourceStatus(StrEnum):
    """What became of the last fetch; `gone` is a 404 or 410."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Source:
    """A URL and the one document that comes from it, made with this title, metadata and chunking.

    `content_hash` is of the bytes that `etag` and `last_modified` speak of. `fetched_at` is the last success,
    `changed_at` the last that brought other bytes, `next_at` when it is fetched again, if ever.
    """

    id: str
    collection_id: str
    url: str
    document_id: str
    title: str | None
    metadata: dict[str, Any]
    chunking: dict[str, Any] | None
    refresh_seconds: int | None
    etag: str | None
    last_modified: str | None
    content_hash: str | None
    status: SourceStatus
    error: dict[str, Any] | None
    failures: int
    created_at: datetime
    fetched_at: datetime | None
    changed_at: datetime | None
    next_at: datetime | None

    @classmethod
    def of(cls, row: RowMapping) -> "Source":
        """Return the source of a row of the table."""
        return cls(**{**row, "status": SourceStatus(row["status"])})


class Sources:
    """The sources of all collections; thread-safe, and atomic between processes."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    def put(self, collection_id: str, document_id: str, url: str, **given: Any) -> Source:
        """Do what `put_in` does in a transaction of its own."""
        with self._database.write() as connection:
            return self.put_in(connection, collection_id, document_id, url, **given)

    def put_in(
        self,
        connection: Connection,
        collection_id: str,
        document_id: str,
        url: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any],
        chunking: dict[str, Any] | None = None,
        refresh_seconds: int | None,
    ) -> Source:
        """Make the document come from the URL, instead of another if it did; raises `NotFound` for no collection.

        What is known of the URL stays known if it is the same one.
        """
        now = self._clock()
        values = {
            "title": title,
            "metadata": metadata,
            "chunking": chunking,
            "refresh_seconds": refresh_seconds,
            "status": SourceStatus.PENDING,
            "next_at": None if refresh_seconds is None else now + timedelta(seconds=refresh_seconds),
        }
        fresh = values | {
            "url": url,
            "etag": None,
            "last_modified": None,
            "content_hash": None,
            "error": None,
            "failures": 0,
            "fetched_at": None,
            "changed_at": None,
        }
        its_own = _of_documents(collection_id, [document_id])
        known = connection.execute(select(sources.c.url).where(its_own)).scalar_one_or_none()
        if known is not None:
            changed = update(sources).where(its_own).values(values if known == url else fresh).returning(sources)
            return Source.of(connection.execute(changed).mappings().one())
        identity = {
            "id": f"src_{secrets.token_hex(12)}",
            "collection_id": collection_id,
            "document_id": document_id,
            "created_at": now,
        }
        try:
            row = connection.execute(insert(sources).returning(sources), fresh | identity).mappings().one()
        except IntegrityError as error:
            raise NotFound("the collection was deleted meanwhile") from error
        return Source.of(row)

    def get(self, collection_id: str, source_id: str) -> Source | None:
        """Return the source if it is this collection's, or `None`."""
        return self._one((sources.c.collection_id == collection_id) & (sources.c.id == source_id))

    def of_document(self, collection_id: str, document_id: str) -> Source | None:
        """Return the source that the document comes from, or `None`."""
        return self._one(_of_documents(collection_id, [document_id]))

    def list(self, collection_id: str, *, limit: int, cursor: str | None = None) -> "tuple[list[Source], str | None]":
        """Return a page of a collection's sources, newest first, and the next page's cursor."""
        query = select(sources).where(sources.c.collection_id == collection_id)
        with self._database.read() as connection:
            rows = connection.execute(_newest_first.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_first.split(rows, limit)
        return [Source.of(row) for row in page], next_cursor

    def delete(self, collection_id: str, source_id: str) -> bool:
        """Forget a source and return whether there was one; its document stays."""
        return self._delete((sources.c.collection_id == collection_id) & (sources.c.id == source_id)) > 0

    def forget_documents(self, collection_id: str, document_ids: Sequence[str]) -> int:
        """Forget where documents came from that are deleted, so that they are not fetched anew; return how many."""
        batches = (document_ids[first : first + _BATCH] for first in range(0, len(document_ids), _BATCH))
        return sum(self._delete(_of_documents(collection_id, batch)) for batch in batches)

    # --- fetch again ---

    def claim_due(self, limit: int) -> Sequence[Source]:
        """Return sources whose time has come, each to one caller only until `CLAIM_SECONDS` have passed."""
        now = self._clock()
        due = select(sources.c.id).where(sources.c.next_at <= now).order_by(sources.c.next_at).limit(limit)
        with self._database.read() as connection:
            if connection.execute(due.limit(1)).first() is None:
                return []
        later = now + timedelta(seconds=CLAIM_SECONDS)
        claimed = update(sources).where(sources.c.id.in_(due)).values(next_at=later).returning(sources)
        with self._database.write() as connection:
            return [Source.of(row) for row in connection.execute(claimed).mappings()]

    def succeeded(self, source: Source, *, etag: str | None, last_modified: str | None, content_hash: str) -> None:
        """Note that the source was fetched, and when it is fetched again."""
        now = self._clock()
        has_changed = source.content_hash != content_hash
        self._note(
            source,
            etag=etag,
            last_modified=last_modified,
            content_hash=content_hash,
            status=SourceStatus.OK,
            error=None,
            failures=0,
            fetched_at=now,
            changed_at=now if has_changed else source.changed_at,
            next_at=self._later(source, 0, 0.0),
        )

    def failed(self, source: Source, error: dict[str, Any], *, is_gone: bool, retry_after: float = 0.0) -> None:
        """Note why the source could not be fetched; each failure in a row doubles the time until the next attempt."""
        failures = source.failures + 1
        self._note(
            source,
            status=SourceStatus.GONE if is_gone else SourceStatus.FAILED,
            error=error,
            failures=failures,
            next_at=self._later(source, failures, retry_after),
        )

    # --- inside ---

    def _later(self, source: Source, failures: int, at_least: float) -> datetime | None:
        interval = source.refresh_seconds
        if interval is None:
            return None
        longest = max(interval, LONGEST_BACKOFF_SECONDS)
        wait = min(longest, interval * 2.0 ** min(failures, 30))
        # Up to a tenth sooner, so that sources made together do not come due together for ever.
        wait *= 1 - secrets.randbelow(100) / 1000
        return self._clock() + timedelta(seconds=max(wait, min(longest, at_least)))

    def _note(self, source: Source, **values: Any) -> None:
        # Under another URL it is another source by now, of which nothing is known.
        same = (sources.c.id == source.id) & (sources.c.url == source.url)
        with self._database.write() as connection:
            connection.execute(update(sources).where(same).values(values))

    def _one(self, condition: ColumnElement[bool]) -> Source | None:
        with self._database.read() as connection:
            row = connection.execute(select(sources).where(condition)).mappings().one_or_none()
        return None if row is None else Source.of(row)

    def _delete(self, condition: ColumnElement[bool]) -> int:
        with self._database.write() as connection:
            return connection.execute(delete(sources).where(condition)).rowcount


def _of_documents(collection_id: str, document_ids: Sequence[str]) -> ColumnElement[bool]:
    return (sources.c.collection_id == collection_id) & sources.c.document_id.in_(document_ids)
