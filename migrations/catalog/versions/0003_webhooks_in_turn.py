"""Find what is due for each webhook, so that collections can take turns."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_webhook_deliveries_webhook_id_state_next_at", "webhook_deliveries", ["webhook_id", "state", "next_at"]
    )


def downgrade() -> None:
    op.drop_index("ix_webhook_deliveries_webhook_id_state_next_at", "webhook_deliveries")
