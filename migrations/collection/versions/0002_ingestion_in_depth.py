"""Add parents, vectors by field, kept versions, staged contexts, and the space that a re-embedding fills."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("chunks", sa.Column("parent_key", sa.Integer()))
    op.add_column("chunks", sa.Column("written_context", sa.Text()))
    op.create_index("ix_chunks_parent_key", "chunks", ["parent_key"])
    op.add_column("documents", sa.Column("chunking", sa.JSON()))
    op.add_column("documents", sa.Column("indexed_at", sa.BigInteger()))
    op.add_column("versions", sa.Column("settings_hash", sa.Text()))
    op.add_column("versions", sa.Column("chunking", sa.JSON()))
    op.add_column("versions", sa.Column("extraction", sa.JSON()))
    op.add_column("versions", sa.Column("kept", sa.Boolean(), nullable=False, server_default="1"))
    op.create_table(
        "content_vectors",
        sa.Column("chunk_key", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk_key", name="pk_content_vectors"),
        sa.ForeignKeyConstraint(["chunk_key"], ["chunks.key"], name="fk_content_vectors_chunk_key", ondelete="CASCADE"),
    )
    op.create_index("ix_content_vectors_text_hash", "content_vectors", ["text_hash"])
    op.create_table(
        "parent_vectors",
        sa.Column("chunk_key", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk_key", name="pk_parent_vectors"),
        sa.ForeignKeyConstraint(["chunk_key"], ["chunks.key"], name="fk_parent_vectors_chunk_key", ondelete="CASCADE"),
    )
    op.create_table(
        "kept_vectors",
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("document_key", "version", "text_hash", name="pk_kept_vectors"),
        sa.ForeignKeyConstraint(
            ["document_key"], ["documents.key"], name="fk_kept_vectors_document_key", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_kept_vectors_text_hash", "kept_vectors", ["text_hash"])
    op.create_table(
        "kept_contexts",
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_key", "version", "text_hash", name="pk_kept_contexts"),
        sa.ForeignKeyConstraint(
            ["document_key"], ["documents.key"], name="fk_kept_contexts_document_key", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "staged_contexts",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "text_hash", name="pk_staged_contexts"),
    )
    op.create_table(
        "next_space",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_next_space"),
    )
    op.create_table(
        "next_vectors",
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("text_hash", name="pk_next_vectors"),
    )


def downgrade() -> None:
    for table in (
        "next_vectors",
        "next_space",
        "staged_contexts",
        "kept_contexts",
        "kept_vectors",
        "parent_vectors",
        "content_vectors",
    ):
        op.drop_table(table)
    op.drop_index("ix_chunks_parent_key", "chunks")
    for table, column in (
        ("chunks", "parent_key"),
        ("chunks", "written_context"),
        ("documents", "chunking"),
        ("documents", "indexed_at"),
        ("versions", "settings_hash"),
        ("versions", "chunking"),
        ("versions", "extraction"),
        ("versions", "kept"),
    ):
        op.drop_column(table, column)
