"""Remember the first answer to each `Idempotency-Key`, so that a request sent twice is done once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.catalog.database import Database
from app.catalog.tables import idempotency_keys
from app.errors import Conflict, FieldError, InvalidRequest, NotFound
from app.stores.column_types import utc_now

LONGEST_ANSWER = timedelta(minutes=5)
"""After this time an answer that was begun is taken for lost with its process."""

_LONGEST_KEY = 255
_POINTER = "header:Idempotency-Key"
_table = idempotency_keys


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered the first time."""

    status: int
    headers: dict[str, str]
    body: bytes


class Idempotency:
    """The remembered requests. `scope` is who asks and for which route; `fingerprint` tells payloads apart."""

    def __init__(self, database: Database, hours: float, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._remembered = timedelta(hours=hours)
        self._clock = clock

    def begin(self, scope: str, key: str, fingerprint: str, *, collection_id: str | None = None) -> StoredAnswer | None:
        """Return the first answer, or `None` if this is the first request, which must then `finish` or `abandon`.

        What belongs to a collection is forgotten with it. Raises `InvalidRequest` (`idempotency_key_reused`) for
        another payload under the same key, `Conflict` (`idempotency_in_progress`) while the first one is in work.
        """
        if not 0 < len(key) <= _LONGEST_KEY:
            raise _invalid("invalid_idempotency_key", f"an Idempotency-Key has 1 to {_LONGEST_KEY} characters")
        now = self._clock()
        first = {
            "scope": scope,
            "key": key,
            "collection_id": collection_id,
            "fingerprint": fingerprint,
            "expires_at": now + LONGEST_ANSWER,
        }
        try:
            with self._database.write() as connection:
                connection.execute(delete(_table).where(_table.c.expires_at <= now))
                found = connection.execute(select(_table).where(_is(scope, key))).mappings().one_or_none()
                if found is None:
                    connection.execute(insert(_table).values(first))
                    return None
        except IntegrityError as error:
            raise NotFound("the collection was deleted meanwhile") from error
        if found["fingerprint"] != fingerprint:
            raise _invalid("idempotency_key_reused", "this Idempotency-Key came with another payload before")
        if found["status"] is None:
            raise Conflict(
                "the first request with this Idempotency-Key is still in work",
                code="idempotency_in_progress",
                hint="send it again later",
                retry_after=1,
            )
        return StoredAnswer(found["status"], found["headers"], found["body"])

    def finish(self, scope: str, key: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Remember the answer."""
        answer = {"status": status, "headers": dict(headers), "body": body}
        until = self._clock() + self._remembered
        with self._database.write() as connection:
            connection.execute(update(_table).where(_is(scope, key)).values(expires_at=until, **answer))

    def abandon(self, scope: str, key: str) -> None:
        """Forget a request that was not done, so that it can be sent again."""
        with self._database.write() as connection:
            connection.execute(delete(_table).where(_is(scope, key), _table.c.status.is_(None)))


def _is(scope: str, key: str) -> ColumnElement[bool]:
    return and_(_table.c.scope == scope, _table.c.key == key)


def _invalid(code: str, detail: str) -> InvalidRequest:
    return InvalidRequest(
        detail, code=code, hint="use a new key for each request", errors=[FieldError(_POINTER, code, detail)]
    )
