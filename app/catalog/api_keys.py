"""Make, check, rotate and revoke keys. A secret is told once; only its SHA-256 is kept."""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Connection, RowMapping, Select, exists, insert, select, update

from app.catalog.database import Database
from app.catalog.paging import NewestFirst
from app.catalog.principal import ADMIN, Principal, Role
from app.catalog.tables import api_keys, collections, key_collections
from app.errors import Conflict, FieldError, InvalidRequest, NotFound, StorageFull, StoreBusy, Unauthenticated
from app.stores.column_types import utc_now
from app.stores.remembered import Remembered

log = logging.getLogger(__name__)

MOST_REMEMBERED = 1000
"""Keys that are remembered, about a kilobyte each."""

USE_NOTED_EVERY = timedelta(minutes=1)

_SECRET = re.compile(r"fn_([0-9a-f]{16})_[0-9a-f]{48}")
_PREFIX_LENGTH = len("fn_") + 8
_newest_first = NewestFirst(api_keys)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as its owner sees it. It is bound to internal collection ids, so a name used again never revives it."""

    id: str
    name: str
    prefix: str
    role: Role
    collection_ids: tuple[str, ...]
    filter: dict[str, Any] | None
    requests_per_minute: int | None
    expires_at: datetime | None
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    rotated_from: str | None = None

    @property
    def revoked(self) -> bool:
        """Return whether it was revoked."""
        return self.revoked_at is not None


class ApiKeys:
    """The keys of all collections, and the admin key, which is in no table."""

    def __init__(self, database: Database, admin_key: str, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._admin_hash = _digest(admin_key)
        self._clock = clock
        self._use_noted: dict[str, datetime] = {}
        self._remembered = Remembered(database.moment, database.read, most=MOST_REMEMBERED)

    def authenticate(self, secret: str) -> Principal:
        """Return who holds the secret; raises `Unauthenticated` for one that is unknown, expired or revoked."""
        form = _SECRET.fullmatch(secret)
        rows = self._rows_of(_id_of(form)) if form else ()
        principal = self._principal(secret, rows)
        if rows:
            self._note_use(rows[0]["id"], rows[0]["last_used_at"], self._clock())
        return principal

    def remembered(self, secret: str) -> Principal | None:
        """Return who holds the secret if nothing need be read or written for it, else `None`; nobody waits."""
        form = _SECRET.fullmatch(secret)
        rows = cast("Sequence[RowMapping] | None", self._remembered.known(_id_of(form))) if form else ()
        if rows is None or (rows and self._is_use_to_note(rows[0]["id"], rows[0]["last_used_at"], self._clock())):
            return None
        return self._principal(secret, rows)

    def _principal(self, secret: str, rows: Sequence[RowMapping]) -> Principal:
        digest = _digest(secret)
        if hmac.compare_digest(digest, self._admin_hash):
            return ADMIN
        # The comparison takes as long for an id that exists as for one that does not.
        matches = hmac.compare_digest(digest, rows[0]["secret_hash"] if rows else self._admin_hash)
        if not rows or not matches:
            raise Unauthenticated("the key is not known", hint="check that it was copied whole")
        key, now = rows[0], self._clock()
        if key["revoked_at"] is not None:
            raise Unauthenticated("the key was revoked")
        if key["expires_at"] is not None and key["expires_at"] <= now:
            raise Unauthenticated("the key has expired")
        return Principal(
            key_id=key["id"],
            role=Role(key["role"]),
            collection_ids=frozenset(row["collection_id"] for row in rows),
            filter=key["filter"],
            requests_per_minute=key["requests_per_minute"],
        )

    def create(
        self,
        name: str,
        collection_ids: Sequence[str],
        role: Role,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the contract's word
        expires_at: datetime | None = None,
        requests_per_minute: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its secret, which cannot be had again.

        Raises `InvalidRequest` for the admin role, no collection or a time that is past, and `NotFound` for a
        collection that does not exist.
        """
        now = self._clock()
        if role is Role.ADMIN:
            raise _invalid("/role", "there is one admin key; a made key has the role search, ask, ingest or owner")
        if not collection_ids:
            raise _invalid("/collections", "a key must open at least one collection")
        if expires_at is not None and (expires_at.tzinfo is None or expires_at <= now):
            raise _invalid("/expires_at", f"expires_at {expires_at.isoformat()} must be a future time with a zone")
        made, secret = _new_key(
            ApiKey("", name, "", role, tuple(sorted(set(collection_ids))), filter, requests_per_minute, expires_at, now)
        )
        with self._database.write() as connection:
            _insert(connection, made, secret)
        return made, secret

    def list(
        self, collection_ids: Iterable[str] | None, *, limit: int, cursor: str | None = None
    ) -> tuple[list[ApiKey], str | None]:
        """Return a page of the keys that open these collections and no other (`None`: all keys), newest first."""
        query = select(api_keys)
        if collection_ids is not None:
            ids = list(collection_ids)
            bound = exists().where(key_collections.c.key_id == api_keys.c.id)
            query = query.where(
                bound.where(key_collections.c.collection_id.in_(ids)),
                ~bound.where(key_collections.c.collection_id.not_in(ids)),
            )
        with self._database.read() as connection:
            rows = connection.execute(_newest_first.page(query, limit, cursor)).mappings().all()
            page, next_cursor = _newest_first.split(rows, limit)
            return _keys(connection, page), next_cursor

    def get(self, key_id: str) -> ApiKey | None:
        """Return the key, or `None`."""
        with self._database.read() as connection:
            return _find(connection, key_id)

    def holds(self, principal: Principal) -> bool:
        """Return whether the key is still valid, for an answer that lasts longer than a request."""
        if principal.key_id is None:
            return True
        key = self.get(principal.key_id)
        return key is not None and not key.revoked and (key.expires_at is None or key.expires_at > self._clock())

    def revoke(self, key_id: str) -> ApiKey:
        """End the key now and for good; raises `NotFound`."""
        with self._database.write() as connection:
            found = _get(connection, key_id)
            if found.revoked:
                return found
            now = self._clock()
            connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(revoked_at=now))
        return replace(found, revoked_at=now)

    def rotate(self, key_id: str, overlap_seconds: float) -> tuple[ApiKey, str]:
        """Make a key like this one, which stays valid for the overlap; return the new one and its secret.

        Raises `NotFound`, and `Conflict` for a key that is revoked or has expired.
        """
        now = self._clock()
        with self._database.write() as connection:
            old = _get(connection, key_id)
            if old.revoked or (old.expires_at is not None and old.expires_at <= now):
                raise Conflict("a key that is revoked or has expired cannot be rotated", hint="make a new key")
            ends = now + timedelta(seconds=overlap_seconds)
            ends = ends if old.expires_at is None else min(ends, old.expires_at)
            connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(expires_at=ends))
            made, secret = _new_key(replace(old, created_at=now, last_used_at=None, rotated_from=old.id))
            _insert(connection, made, secret)
        return made, secret

    def _rows_of(self, key_id: str) -> Sequence[RowMapping]:
        query = (
            select(api_keys, key_collections.c.collection_id)
            .join(key_collections, key_collections.c.key_id == api_keys.c.id)
            .where(api_keys.c.id == key_id)
        )
        return self._remembered.get(key_id, lambda connection: connection.execute(query).mappings().all() or None) or ()

    def _is_use_to_note(self, key_id: str, stored: datetime | None, now: datetime) -> bool:
        last = max((when for when in (stored, self._use_noted.get(key_id)) if when is not None), default=None)
        return last is None or now - last >= USE_NOTED_EVERY

    def _note_use(self, key_id: str, stored: datetime | None, now: datetime) -> None:
        """Write when the key was used, at most once a minute, and never fail a request for it."""
        if not self._is_use_to_note(key_id, stored, now):
            return
        self._use_noted[key_id] = now
        try:
            with self._database.write() as connection:
                connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=now))
        except (StoreBusy, StorageFull) as error:
            log.warning("the use of a key was not noted", extra={"key_id": key_id, "code": error.code})


def _id_of(form: re.Match[str]) -> str:
    return f"key_{form.group(1)}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _invalid(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, errors=[FieldError(pointer, "invalid_value", detail)])


def _new_key(like: ApiKey) -> tuple[ApiKey, str]:
    identifier = secrets.token_hex(8)
    secret = f"fn_{identifier}_{secrets.token_hex(24)}"
    return replace(like, id=f"key_{identifier}", prefix=secret[:_PREFIX_LENGTH]), secret


def _insert(connection: Connection, made: ApiKey, secret: str) -> None:
    bound = collections.c.id.in_(made.collection_ids)
    missing = set(made.collection_ids).difference(connection.execute(select(collections.c.id).where(bound)).scalars())
    if missing:
        raise NotFound("a collection that the key would open does not exist")
    values = asdict(made) | {"secret_hash": _digest(secret)}
    del values["collection_ids"]
    connection.execute(insert(api_keys).values(values))
    connection.execute(
        insert(key_collections), [{"key_id": made.id, "collection_id": opened} for opened in made.collection_ids]
    )


def _get(connection: Connection, key_id: str) -> ApiKey:
    found = _find(connection, key_id)
    if found is None:
        raise NotFound(f"there is no key {key_id!r}")
    return found


def _find(connection: Connection, key_id: str) -> ApiKey | None:
    query: Select[Any] = select(api_keys).where(api_keys.c.id == key_id)
    found = _keys(connection, connection.execute(query).mappings().all())
    return found[0] if found else None


def _keys(connection: Connection, rows: Sequence[RowMapping]) -> list[ApiKey]:
    opened: dict[str, list[str]] = {row["id"]: [] for row in rows}
    query = select(key_collections).where(key_collections.c.key_id.in_(list(opened)))
    for binding in connection.execute(query.order_by(key_collections.c.collection_id)).mappings():
        opened[binding["key_id"]].append(binding["collection_id"])
    return [_key(row, tuple(opened[row["id"]])) for row in rows]


def _key(row: RowMapping, collection_ids: tuple[str, ...]) -> ApiKey:
    values = {name: value for name, value in row.items() if name != "secret_hash"}
    return ApiKey(**values | {"role": Role(row["role"]), "collection_ids": collection_ids})
