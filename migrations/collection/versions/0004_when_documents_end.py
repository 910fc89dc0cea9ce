"""Find documents by when they end, and by how long they have not changed."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_documents_expires_at", "documents", ["expires_at"])
    op.create_index("ix_documents_updated_at", "documents", ["updated_at"])
