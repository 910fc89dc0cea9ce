"""Add sources that are fetched again, webhooks with their deliveries, and a count of a job's changes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("changes", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "sources",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("document_id", sa.String(256), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("chunking", sa.JSON()),
        sa.Column("refresh_seconds", sa.Integer()),
        sa.Column("etag", sa.Text()),
        sa.Column("last_modified", sa.Text()),
        sa.Column("content_hash", sa.Text()),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("fetched_at", sa.BigInteger()),
        sa.Column("changed_at", sa.BigInteger()),
        sa.Column("next_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
        sa.UniqueConstraint("collection_id", "document_id", name="uq_sources_collection_id_document_id"),
        _of_collection("sources"),
    )
    op.create_index("ix_sources_next_at", "sources", ["next_at"])
    op.create_index("ix_sources_collection_id_created_at_id", "sources", ["collection_id", "created_at", "id"])
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        _of_collection("webhooks"),
    )
    op.create_index("ix_webhooks_collection_id_created_at_id", "webhooks", ["collection_id", "created_at", "id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("webhook_id", sa.String(40), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("owner", sa.String(128)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("delivered_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name="fk_webhook_deliveries_webhook_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_webhook_deliveries_state_next_at", "webhook_deliveries", ["state", "next_at"])
    op.create_index(
        "ix_webhook_deliveries_webhook_id_created_at_id", "webhook_deliveries", ["webhook_id", "created_at", "id"]
    )


def _of_collection(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["collection_id"], ["collections.id"], name=f"fk_{table}_collection_id", ondelete="CASCADE"
    )


def downgrade() -> None:
    for table in ("webhook_deliveries", "webhooks", "sources"):
        op.drop_table(table)
    op.drop_column("jobs", "changes")
