"""Create the tables of collections, keys, jobs and idempotent requests."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("description", sa.Text()),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("filter", sa.JSON()),
        sa.Column("requests_per_minute", sa.Integer()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("rotated_from", sa.String(40)),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    op.create_table(
        "key_collections",
        sa.Column("key_id", sa.String(40), nullable=False),
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "collection_id", name="pk_key_collections"),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="fk_key_collections_key_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_key_collections_collection_id", ondelete="CASCADE"
        ),
    )
    _index("key_collections", "collection_id")
    _create_jobs()
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("collection_id", sa.String(40)),
        sa.Column("fingerprint", sa.String(128), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("headers", sa.JSON()),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_idempotency_keys_collection_id", ondelete="CASCADE"
        ),
    )
    _index("idempotency_keys", "collection_id")
    _index("idempotency_keys", "expires_at")


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.Column("collection", sa.String(63), nullable=False),
        sa.Column("document_id", sa.String(256), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(64)),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer()),
        sa.Column("unit", sa.String(32)),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("stages", sa.JSON(), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("result", sa.JSON()),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("owner", sa.String(128)),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_jobs_collection_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    _index("jobs", "state", "collection_id", "crashes", "sequence", "available_at")
    _index("jobs", "collection_id", "document_id", "state", "sequence")
    _index("jobs", "collection_id", "started_at")
    _index("jobs", "collection_id", "created_at", "id")
    _index("jobs", "created_at", "id")
    _index("jobs", "finished_at")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def downgrade() -> None:
    for table in ("idempotency_keys", "jobs", "key_collections", "api_keys", "collections"):
        op.drop_table(table)
