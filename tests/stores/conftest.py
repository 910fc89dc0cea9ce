"""A real store in a folder of its own, and documents to put into it."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain import Chunk, Document
from app.settings import Settings
from app.stores.connection import Database
from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]
DIMENSIONS = 16


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path, Settings())
    yield opened
    opened.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A collection's database in the file `c.db`."""
    opened = Database(tmp_path / "c.db", read_seconds=5, write_seconds=5)
    opened.migrate()
    yield opened
    opened.close()


def prepare_document(
    store: SqliteStore, document_id: str, pieces: Sequence[str] = ("some text ",), metadata: Any = None
) -> PreparedDocument:
    registration = store.register_document(
        document_id, title=document_id, metadata=metadata or {}, media_type="text/plain", filename=None
    )
    text = "".join(pieces)
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return PreparedDocument(
        id=document_id,
        registration=registration,
        etag="etag",
        title=document_id,
        metadata=metadata or {},
        source_type="text",
        media_type="text/plain",
        filename=None,
        content_hash=sha256(document_id.encode()).hexdigest(),
        settings_hash="",
        text=text,
        pages=(),
        extraction={},
        warnings=(),
        expires_at=None,
        chunks=[
            Chunk(i, end - len(piece), end, piece, 2) for i, (piece, end) in enumerate(zip(pieces, ends, strict=True))
        ],
        vectors=np.random.default_rng(len(text)).standard_normal((len(pieces), DIMENSIONS)).astype(np.float32),
    )


@pytest.fixture
def prepare() -> Callable[..., PreparedDocument]:
    """Register a document and return a version of it, ready to be written."""
    return prepare_document


@pytest.fixture
def put() -> Put:
    """Write a document whose chunks are the pieces of its text."""
    return lambda store, *arguments: store.replace_document(prepare_document(store, *arguments))
