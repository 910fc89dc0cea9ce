"""Find what is due for each webhook, so that collections can take turns; keep what collections were asked."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_webhook_deliveries_webhook_id_state_next_at", "webhook_deliveries", ["webhook_id", "state", "next_at"]
    )
    op.create_table(
        "queries",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.String(16), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("query_characters", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(40)),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("hit_count", sa.Integer(), nullable=False),
        sa.Column("hits", sa.JSON(), nullable=False),
        sa.Column("degraded", sa.JSON(), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("total_ms", sa.Float(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_queries"),
        _of_collection("queries"),
    )
    op.create_index("ix_queries_collection_id_created_at_id", "queries", ["collection_id", "created_at", "id"])
    op.create_table(
        "cleared_query_logs",
        sa.Column("collection_id", sa.String(40), nullable=False),
        sa.Column("cleared_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("collection_id", name="pk_cleared_query_logs"),
        _of_collection("cleared_query_logs"),
    )


def _of_collection(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["collection_id"], ["collections.id"], name=f"fk_{table}_collection_id", ondelete="CASCADE"
    )


def downgrade() -> None:
    for table in ("cleared_query_logs", "queries"):
        op.drop_table(table)
    op.drop_index("ix_webhook_deliveries_webhook_id_state_next_at", "webhook_deliveries")
