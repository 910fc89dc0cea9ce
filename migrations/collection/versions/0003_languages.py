"""Add the language of each document."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("language", sa.String(8)))
    op.create_index("ix_documents_language", "documents", ["language"])
