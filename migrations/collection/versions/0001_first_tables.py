"""Create the tables of documents, texts, chunks, vectors, the change log and the attributes that filters read."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

COUNTERS = ("document_key", "chunk_key", "scope")


def upgrade() -> None:
    counters = op.create_table(
        "counters",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in COUNTERS])
    op.create_table(
        "embedding_space",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_embedding_space"),
    )
    _create_documents()
    _create_chunks()
    op.create_table(
        "attributes",
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("field", "kind", "value", "document_key", name="pk_attributes"),
        _of_document("attributes"),
        sqlite_with_rowid=False,
    )
    _index("attributes", "document_key")


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("key", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("etag", sa.Text()),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text()),
        sa.Column("content_hash", sa.Text()),
        sa.Column("settings_hash", sa.Text()),
        sa.Column("characters", sa.BigInteger(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("extraction", sa.JSON()),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("key", name="pk_documents"),
        sa.UniqueConstraint("id", name="uq_documents_id"),
    )
    _index("documents", "content_hash")
    _index("documents", "state", "chunk_count", "characters")
    op.create_table(
        "versions",
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text()),
        sa.Column("characters", sa.BigInteger(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("document_key", "version", name="pk_versions"),
        _of_document("versions"),
    )
    _index("versions", "content_hash")
    op.create_table(
        "texts",
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("document_key", "start", name="pk_texts"),
        _of_document("texts"),
    )
    op.create_table(
        "pages",
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("document_key", "number", name="pk_pages"),
        _of_document("pages"),
    )


def _create_chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("key", sa.Integer(), nullable=False),
        sa.Column("document_key", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("heading_path", sa.JSON(), nullable=False),
        sa.Column("page_start", sa.Integer()),
        sa.Column("page_end", sa.Integer()),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("token_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_chunks"),
        sa.UniqueConstraint("document_key", "ordinal", name="uq_chunks_document_key_ordinal"),
        _of_document("chunks"),
    )
    op.create_table(
        "vectors",
        sa.Column("chunk_key", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk_key", name="pk_vectors"),
        sa.ForeignKeyConstraint(["chunk_key"], ["chunks.key"], name="fk_vectors_chunk_key", ondelete="CASCADE"),
    )
    _index("vectors", "text_hash")
    op.create_table(
        "staged_vectors",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "text_hash", name="pk_staged_vectors"),
    )
    _index("staged_vectors", "text_hash")
    op.create_table(
        "changes",
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("chunk_key", sa.Integer(), nullable=False),
        sa.Column("operation", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_changes"),
        sqlite_autoincrement=True,
    )


def _of_document(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["document_key"], ["documents.key"], name=f"fk_{table}_document_key", ondelete="CASCADE"
    )


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def downgrade() -> None:
    for table in ("changes", "staged_vectors", "vectors", "chunks", "attributes", "pages", "texts", "versions"):
        op.drop_table(table)
    for table in ("documents", "embedding_space", "counters"):
        op.drop_table(table)
