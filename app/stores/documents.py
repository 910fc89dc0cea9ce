"""Write and read documents, their versions, and the attributes that filters look up."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, union_all, update

from app.domain import Document, DocumentState, Metadata
from app.errors import Cancelled, NotFound, Overtaken
from app.stores.attributes import Attribute, document_attributes
from app.stores.changes import advance, log_deleted_documents
from app.stores.expressions import one_of
from app.stores.prepared import PreparedDocument
from app.stores.quotas import require_room_for_document
from app.stores.schema import attributes, documents, versions

_IDS_AT_ONCE = 1000

_NEXT_LANGUAGE = select(func.min(documents.c.language)).where(documents.c.language > bindparam("after"))
_MOST_COUNTED = 10_000
_OF_LANGUAGE = select(documents.c.key).where(documents.c.language == bindparam("language")).limit(_MOST_COUNTED)
_COUNT_OF_LANGUAGE = select(func.count()).select_from(_OF_LANGUAGE.subquery())

# Each time is looked up in an index of its own; the two as one condition read every document.
_ENDED_KEYS = select(documents.c.key).where(documents.c.expires_at <= bindparam("now"))
_OLD_KEYS = select(documents.c.key).where(
    documents.c.updated_at <= bindparam("unchanged_since"), documents.c.version > 0
)
_ENDED, _ENDED_OR_OLD = (
    select(documents.c.id).where(documents.c.key.in_(keys)).order_by(documents.c.key)
    for keys in (_ENDED_KEYS, union_all(_ENDED_KEYS, _OLD_KEYS))
)


_NEXT_END = select(func.min(documents.c.expires_at)).where(documents.c.expires_at > bindparam("now"))
_NEXT_OLD = select(func.min(documents.c.updated_at)).where(
    documents.c.updated_at > bindparam("unchanged_since"), documents.c.version > 0
)


class Ended(NamedTuple):
    """The documents whose time is over from one moment on until the next one ends."""

    since: datetime
    until: datetime
    document_ids: list[str]


class Counts(NamedTuple):
    """Sums over some documents."""

    documents: int
    chunks: int
    characters: int


def find(connection: Connection, document_id: str) -> Document | None:
    """Return the document, or `None`."""
    row = _row(connection, document_id)
    return None if row is None else as_document(row)


def existing(connection: Connection, document_id: str) -> Document:
    """Return the document; raises `NotFound`."""
    found = find(connection, document_id)
    if found is None:
        raise _not_found(document_id)
    return found


def key_of_ready(connection: Connection, document_id: str) -> int:
    """Return the key of a document that has a ready version; raises `NotFound`."""
    wanted = select(documents.c.key).where(documents.c.id == document_id, documents.c.version > 0)
    key = connection.scalar(wanted)
    if key is None:
        raise _not_found(document_id)
    return key


def register(
    connection: Connection,
    document_id: str,
    *,
    title: str,
    metadata: Metadata,
    media_type: str,
    filename: str | None,
    now: datetime,
    most: int | None = None,
) -> int:
    """Make the document known, beside fewer than `most`, and return its registration: its key."""
    values: dict[str, Any] = {"error": None}
    described: dict[str, Any] = {
        "state": DocumentState.PENDING.value,
        "title": title,
        "metadata": dict(metadata),
        "media_type": media_type,
        "filename": filename,
        "extraction": None,
        "updated_at": now,
    }
    row = _row(connection, document_id)
    if row is None:
        require_room_for_document(connection, most)
        blank = {"version": 0, "source_type": "", "characters": 0, "chunk_count": 0, "warnings": [], "created_at": now}
        key = advance(connection, "document_key")
        connection.execute(insert(documents).values(key=key, id=document_id, **values, **described, **blank))
    else:
        key = row.key
        _change(connection, key, values if row.version else values | described)
    if row is None or row.version == 0:
        _write_attributes(connection, document_id)
    return key


def set_state(
    connection: Connection,
    document_id: str,
    registration: int,
    state: Literal["processing", "failed"],
    error: Metadata | None,
    extraction: Metadata | None,
) -> None:
    """Record a state; one with a ready version stays ready and gets the error only."""
    row = _row(connection, document_id)
    if row is None or row.key != registration:
        return
    values: dict[str, Any] = {"error": None if error is None else dict(error)}
    if row.version == 0:
        values |= {"state": state, "extraction": None if extraction is None else dict(extraction)}
    _change(connection, row.key, values)


def language_of(connection: Connection, document_key: int) -> str | None:
    """Return the language that a document has now."""
    return connection.scalar(select(documents.c.language).where(documents.c.key == document_key))


def languages(connection: Connection) -> tuple[str, ...]:
    """Return every language that a document has, those of the most documents first; more than 10,000 are as many.

    Each language is one step through their index, and its documents are counted only beside another's.
    """
    found: list[str] = []
    while (after := connection.scalar(_NEXT_LANGUAGE, {"after": found[-1] if found else ""})) is not None:
        found.append(after)
    if len(found) < 2:
        return tuple(found)
    counts = {language: connection.scalar(_COUNT_OF_LANGUAGE, {"language": language}) or 0 for language in found}
    return tuple(sorted(found, key=lambda language: -counts[language]))


def write_version(connection: Connection, prepared: PreparedDocument, now: datetime) -> int:
    """Make the prepared version the ready one and return the document's key.

    Raises `Cancelled` when the document that was registered is gone.
    """
    row = _row(connection, prepared.id)
    if row is None or row.key != prepared.registration:
        raise Cancelled(f"document {prepared.id!r} was deleted meanwhile")
    described: dict[str, Any] = {
        "version": row.version + 1,
        "etag": prepared.etag,
        "content_hash": prepared.content_hash,
        "title": prepared.title,
        "metadata": dict(prepared.metadata),
        "media_type": prepared.media_type,
        "filename": prepared.filename,
        "characters": len(prepared.text),
        "chunk_count": len(prepared.children),
        "settings_hash": prepared.settings_hash,
        "chunking": None if prepared.chunking is None else dict(prepared.chunking),
        "extraction": dict(prepared.extraction),
    }
    connection.execute(insert(versions).values(document_key=row.key, created_at=now, kept=True, **described))
    rest = {
        "state": DocumentState.READY.value,
        "source_type": prepared.source_type,
        "warnings": [notice.as_json() for notice in prepared.warnings],
        "error": None,
        "updated_at": now,
        "expires_at": prepared.expires_at,
        "indexed_at": now,
        "language": prepared.language,
    }
    _change(connection, row.key, described | rest)
    _write_attributes(connection, prepared.id)
    advance(connection, "scope")
    return int(row.key)


def update_ready(
    connection: Connection,
    document_id: str,
    *,
    etag: str,
    title: str,
    metadata: Metadata,
    expires_at: datetime | None,
    now: datetime,
) -> None:
    """Change what needs no embedding, in the document and in the line of its present version."""
    row = _row(connection, document_id)
    if row is None:
        raise _not_found(document_id)
    described = {"etag": etag, "title": title, "metadata": dict(metadata)}
    _change(connection, row.key, described | {"expires_at": expires_at, "updated_at": now})
    present = (versions.c.document_key == row.key, versions.c.version == row.version)
    connection.execute(update(versions).where(*present).values(**described))
    _write_attributes(connection, document_id)
    advance(connection, "scope")


def expect(connection: Connection, document_ids: Sequence[str], etag: str | None) -> None:
    """Raise `Overtaken` where one of the documents has another etag; `None` expects nothing."""
    if etag is None:
        return
    for document_id in document_ids:
        row = _row(connection, document_id)
        if row is not None and row.etag != etag:
            raise Overtaken(
                f"the document {document_id!r} has the etag {row.etag}, not {etag}",
                hint="read the document again and repeat the change on what it is now",
            )


def delete_all(connection: Connection, document_ids: Sequence[str]) -> int:
    """Delete documents with all that belongs to them and return how many existed."""
    deleted = 0
    for first in range(0, len(document_ids), _IDS_AT_ONCE):
        some = document_ids[first : first + _IDS_AT_ONCE]
        named = select(documents.c.key).where(one_of(documents.c.id, "document_ids"))
        keys = list(connection.scalars(named, {"document_ids": some}))
        log_deleted_documents(connection, keys)
        connection.execute(delete(documents).where(documents.c.key.in_(keys)))
        deleted += len(keys)
    if deleted:
        advance(connection, "scope")
    return deleted


def settings_hash(connection: Connection, document_id: str) -> str | None:
    """Return the settings hash of the ready version."""
    return connection.scalar(select(documents.c.settings_hash).where(documents.c.id == document_id))


def with_content(connection: Connection, content_hash: str, limit: int) -> list[str]:
    """Return ids of ready documents whose original has these bytes, oldest first."""
    same = select(documents.c.id).where(documents.c.content_hash == content_hash)
    return list(connection.scalars(same.order_by(documents.c.key).limit(limit)))


def expired(
    connection: Connection, now: datetime, unchanged_since: datetime | None, limit: int | None = None
) -> list[str]:
    """Return ids of ready documents whose time is over, oldest first."""
    over = _ENDED if unchanged_since is None else _ENDED_OR_OLD
    times = {"now": now} if unchanged_since is None else {"now": now, "unchanged_since": unchanged_since}
    return list(connection.scalars(over.limit(limit), times))


def ended(connection: Connection, now: datetime, max_age: timedelta | None) -> Ended:
    """Return the ready documents whose time is over; without a commit they are the same until the next one ends."""
    unchanged_since = None if max_age is None else now - max_age
    ends = [connection.scalar(_NEXT_END, {"now": now})]
    if max_age is not None:
        oldest = connection.scalar(_NEXT_OLD, {"unchanged_since": unchanged_since})
        ends.append(None if oldest is None else oldest + max_age)
    until = min((end for end in ends if end is not None), default=datetime.max.replace(tzinfo=UTC))
    return Ended(now, until, expired(connection, now, unchanged_since))


def count_by_state(connection: Connection) -> dict[str, Counts]:
    """Return counts for each state that a document has."""
    sums = (func.count(), func.sum(documents.c.chunk_count), func.sum(documents.c.characters))
    rows = connection.execute(select(documents.c.state, *sums).group_by(documents.c.state))
    return {state: Counts(*counts) for state, *counts in rows}


def as_document(row: Row[*tuple[Any, ...]]) -> Document:
    """Return a row of the table as the shared noun."""
    return Document(
        key=row.key,
        id=row.id,
        state=DocumentState(row.state),
        version=row.version,
        etag=row.etag,
        title=row.title,
        metadata=row.metadata,
        source_type=row.source_type,
        media_type=row.media_type,
        filename=row.filename,
        content_hash=row.content_hash,
        characters=row.characters,
        chunk_count=row.chunk_count,
        extraction=row.extraction,
        warnings=tuple(row.warnings),
        error=row.error,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        chunking=row.chunking,
        indexed_at=row.indexed_at,
    )


def attributes_of(row: Row[*tuple[Any, ...]]) -> set[Attribute]:
    """Return what filters look up of a row of the table."""
    return document_attributes(
        row.metadata,
        document_id=row.id,
        source_type=row.source_type,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _row(connection: Connection, document_id: str) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(select(documents).where(documents.c.id == document_id)).one_or_none()


def _change(connection: Connection, document_key: int, values: dict[str, Any]) -> None:
    connection.execute(update(documents).where(documents.c.key == document_key).values(**values))


def _write_attributes(connection: Connection, document_id: str) -> None:
    row = connection.execute(select(documents).where(documents.c.id == document_id)).one()
    connection.execute(delete(attributes).where(attributes.c.document_key == row.key))
    connection.execute(
        insert(attributes),
        [
            {"field": field, "kind": int(kind), "value": value, "document_key": row.key}
            for field, kind, value in sorted(attributes_of(row), key=lambda attribute: attribute[:2])
        ],
    )


def _not_found(document_id: str) -> NotFound:
    return NotFound(f"there is no document {document_id!r}")
