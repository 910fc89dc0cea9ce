"""The catalog's tables. Times are microseconds since 1970 in UTC; JSON `null` is SQL `NULL`."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Named,
    String,
    Table,
    Text,
    TypedColumns,
    UniqueConstraint,
)

from app.stores.column_types import CONSTRAINT_NAMES, NULLABLE_JSON, UtcTime

metadata = MetaData(naming_convention=CONSTRAINT_NAMES)


class CollectionColumns(TypedColumns):
    """One collection, which is one tenant; `id` names its folder and is never used twice."""

    id: Named[str] = Column(String(40), primary_key=True)
    name: Named[str] = Column(String(63), unique=True)
    title: Named[str | None] = Column(Text)
    description: Named[str | None] = Column(Text)
    settings: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    created_at: Named[datetime] = Column(UtcTime)
    updated_at: Named[datetime] = Column(UtcTime)


class ApiKeyColumns(TypedColumns):
    """One key; the secret itself is nowhere, only its SHA-256."""

    id: Named[str] = Column(String(40), primary_key=True)
    name: Named[str] = Column(Text)
    prefix: Named[str] = Column(String(16))
    secret_hash: Named[str] = Column(String(64))
    role: Named[str] = Column(String(16))
    filter: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    requests_per_minute: Named[int | None] = Column(Integer)
    expires_at: Named[datetime | None] = Column(UtcTime)
    created_at: Named[datetime] = Column(UtcTime)
    last_used_at: Named[datetime | None] = Column(UtcTime)
    revoked_at: Named[datetime | None] = Column(UtcTime)
    rotated_from: Named[str | None] = Column(String(40))


class KeyCollectionColumns(TypedColumns):
    """Which collections a key opens."""

    key_id: Named[str] = Column(String(40), ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True)
    collection_id: Named[str] = Column(
        String(40), ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class JobColumns(TypedColumns):
    """One piece of long work. `sequence` orders the queue and never leaves the catalog, since it counts all tenants'.

    `document_id` is empty for work on the whole collection. `crashes` counts the processes that died of or beside the
    job. `changes` grows with each change that is told of. `password` is apart from the payload, so that it
    is read by nobody but the job's worker and is easily wiped.
    """

    sequence: Named[int] = Column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    id: Named[str] = Column(String(40), unique=True)
    kind: Named[str] = Column(String(32))
    collection_id: Named[str] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"))
    collection: Named[str] = Column(String(63))
    document_id: Named[str] = Column(String(256))
    state: Named[str] = Column(String(16))
    stage: Named[str | None] = Column(String(64))
    done: Named[int] = Column(Integer)
    total: Named[int | None] = Column(Integer)
    unit: Named[str | None] = Column(String(32))
    attempt: Named[int] = Column(Integer)
    crashes: Named[int] = Column(Integer)
    stages: Named[list[dict[str, Any]]] = Column(NULLABLE_JSON)
    error: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    result: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    payload: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    password: Named[str | None] = Column(Text)
    owner: Named[str | None] = Column(String(128))
    lease_until: Named[datetime | None] = Column(UtcTime)
    available_at: Named[datetime] = Column(UtcTime)
    cancel_requested: Named[bool] = Column(Boolean)
    changes: Named[int] = Column(Integer, server_default="0")
    created_at: Named[datetime] = Column(UtcTime)
    started_at: Named[datetime | None] = Column(UtcTime)
    finished_at: Named[datetime | None] = Column(UtcTime)


class IdempotencyColumns(TypedColumns):
    """One request that carried an `Idempotency-Key`; `status` is NULL while its first answer is being made."""

    scope: Named[str] = Column(Text, primary_key=True)
    key: Named[str] = Column(String(255), primary_key=True)
    collection_id: Named[str | None] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"), index=True)
    fingerprint: Named[str] = Column(String(128))
    status: Named[int | None] = Column(Integer)
    headers: Named[dict[str, str] | None] = Column(NULLABLE_JSON)
    body: Named[bytes | None] = Column(LargeBinary)
    expires_at: Named[datetime] = Column(UtcTime, index=True)


class SourceColumns(TypedColumns):
    """A URL that a document comes from; it is fetched again at `next_at`, never where that is NULL."""

    id: Named[str] = Column(String(40), primary_key=True)
    collection_id: Named[str] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"))
    url: Named[str] = Column(Text)
    document_id: Named[str] = Column(String(256))
    title: Named[str | None] = Column(Text)
    metadata: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    chunking: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    refresh_seconds: Named[int | None] = Column(Integer)
    etag: Named[str | None] = Column(Text)
    last_modified: Named[str | None] = Column(Text)
    content_hash: Named[str | None] = Column(Text)
    status: Named[str] = Column(String(16))
    error: Named[dict[str, Any] | None] = Column(NULLABLE_JSON)
    failures: Named[int] = Column(Integer)
    created_at: Named[datetime] = Column(UtcTime)
    fetched_at: Named[datetime | None] = Column(UtcTime)
    changed_at: Named[datetime | None] = Column(UtcTime)
    next_at: Named[datetime | None] = Column(UtcTime, index=True)


class WebhookColumns(TypedColumns):
    """Where a collection's events are sent. The secret signs them, so it is kept as it is."""

    id: Named[str] = Column(String(40), primary_key=True)
    collection_id: Named[str] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"))
    url: Named[str] = Column(Text)
    secret: Named[str] = Column(Text)
    events: Named[list[str]] = Column(NULLABLE_JSON)
    active: Named[bool] = Column(Boolean)
    created_at: Named[datetime] = Column(UtcTime)


class WebhookDeliveryColumns(TypedColumns):
    """One event on its way to one webhook; `next_at` is when it is tried next."""

    id: Named[str] = Column(String(40), primary_key=True)
    webhook_id: Named[str] = Column(String(40), ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Named[str] = Column(String(64))
    payload: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    state: Named[str] = Column(String(16))
    attempts: Named[int] = Column(Integer)
    status: Named[int | None] = Column(Integer)
    error: Named[str | None] = Column(Text)
    owner: Named[str | None] = Column(String(128))
    created_at: Named[datetime] = Column(UtcTime)
    next_at: Named[datetime | None] = Column(UtcTime)
    delivered_at: Named[datetime | None] = Column(UtcTime)


class QueryColumns(TypedColumns):
    """One query of a collection's log; `query` is its beginning, `hits` are the first, without their texts."""

    id: Named[str] = Column(String(40), primary_key=True)
    collection_id: Named[str] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"))
    created_at: Named[datetime] = Column(UtcTime)
    operation: Named[str] = Column(String(16))
    query: Named[str] = Column(Text)
    query_characters: Named[int] = Column(Integer)
    key_id: Named[str | None] = Column(String(40))
    mode: Named[str] = Column(String(16))
    options: Named[dict[str, Any]] = Column(NULLABLE_JSON)
    hit_count: Named[int] = Column(Integer)
    hits: Named[list[dict[str, Any]]] = Column(NULLABLE_JSON)
    degraded: Named[list[str]] = Column(NULLABLE_JSON)
    warnings: Named[list[str]] = Column(NULLABLE_JSON)
    total_ms: Named[float] = Column(Float)
    request_id: Named[str] = Column(String(128))


class ClearedQueryLogColumns(TypedColumns):
    """When a collection's log was last cleared: what was asked before and is not written yet must not come back."""

    collection_id: Named[str] = Column(String(40), ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True)
    cleared_at: Named[datetime] = Column(UtcTime)


collections = Table("collections", metadata, CollectionColumns)
api_keys = Table("api_keys", metadata, ApiKeyColumns)
key_collections = Table("key_collections", metadata, KeyCollectionColumns)
jobs = Table(
    "jobs",
    metadata,
    JobColumns,
    # The queue, read from this index alone.
    Index(None, "state", "collection_id", "crashes", "sequence", "available_at"),
    # Whether a document has an earlier unfinished job.
    Index(None, "collection_id", "document_id", "state", "sequence"),
    # When a collection was last served.
    Index(None, "collection_id", "started_at"),
    # Lists, of one collection and of all.
    Index(None, "collection_id", "created_at", "id"),
    Index(None, "created_at", "id"),
    Index(None, "finished_at"),
    sqlite_autoincrement=True,
)
idempotency_keys = Table("idempotency_keys", metadata, IdempotencyColumns)
sources = Table(
    "sources",
    metadata,
    SourceColumns,
    UniqueConstraint("collection_id", "document_id"),
    Index(None, "collection_id", "created_at", "id"),
)
webhooks = Table("webhooks", metadata, WebhookColumns, Index(None, "collection_id", "created_at", "id"))
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    WebhookDeliveryColumns,
    Index(None, "state", "next_at"),
    # Whether something is due for a webhook.
    Index(None, "webhook_id", "state", "next_at"),
    Index(None, "webhook_id", "created_at", "id"),
)
queries = Table("queries", metadata, QueryColumns, Index(None, "collection_id", "created_at", "id"))
cleared_query_logs = Table("cleared_query_logs", metadata, ClearedQueryLogColumns)
