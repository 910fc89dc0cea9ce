"""A collection's real store and index in a temporary folder, and documents to put into it."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain import Chunk
from app.indexes.analysis import Analyzer
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.indexes.port import CollectionIndex
from app.indexes.registry import create_index
from app.settings import Settings
from app.stores.port import CollectionStore
from app.stores.prepared import PreparedDocument
from app.stores.registry import create_store, open_store

DIMENSIONS = 16


def make_vector(text: str) -> NDArray[np.float32]:
    """Return a unit vector that only this text has."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def put_document(store: CollectionStore, document_id: str, texts: Sequence[str]) -> None:
    """Put a document of one chunk per text."""
    registration = store.register_document(
        document_id, title=document_id, metadata={}, media_type="text/plain", filename=None
    )
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        chunks.append(Chunk(ordinal, start, start + len(text), text, len(text.split())))
        start += len(text) + 1
    whole = "\n".join(texts)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    store.replace_document(
        PreparedDocument(
            id=document_id,
            registration=registration,
            etag=digest,
            title=document_id,
            metadata={},
            source_type="text",
            media_type="text/plain",
            filename=None,
            content_hash=digest,
            settings_hash="",
            text=whole,
            pages=(),
            extraction={},
            warnings=(),
            expires_at=None,
            chunks=chunks,
            vectors=np.stack([make_vector(text) for text in texts]),
        )
    )


def make_pool(
    data: Path, limit: int = 8, open_index: Callable[[Path, str], CollectionIndex] = create_index
) -> OpenCollections:
    """Return a pool of real stores and indexes below `data`."""
    analyzer = Analyzer()
    return OpenCollections(
        data / "collections",
        create_store=partial(create_store, settings=Settings(data=data)),
        open_store=partial(open_store, settings=Settings(data=data)),
        open_index=lambda folder: open_index(folder, analyzer.signature),
        analyzer=analyzer,
        limit=limit,
    )


@pytest.fixture(scope="session")
def analyzer() -> Analyzer:
    return Analyzer()


@pytest.fixture(scope="session")
def vector_of() -> Callable[[str], NDArray[np.float32]]:
    return make_vector


@pytest.fixture(scope="session")
def put() -> Callable[[CollectionStore, str, Sequence[str]], None]:
    return put_document


@pytest.fixture
def open_pool(tmp_path: Path) -> Iterator[Callable[..., OpenCollections]]:
    """Return what opens pools on one data folder, as several processes would."""
    pools: list[OpenCollections] = []

    def open_another(
        limit: int = 8, open_index: Callable[[Path, str], CollectionIndex] = create_index
    ) -> OpenCollections:
        pools.append(make_pool(tmp_path, limit, open_index))
        return pools[-1]

    yield open_another
    for pool in pools:
        pool.close()


@pytest.fixture
def collections(open_pool: Callable[..., OpenCollections]) -> OpenCollections:
    return open_pool()


@pytest.fixture
def opened(collections: OpenCollections) -> Iterator[OpenCollection]:
    """An open, empty collection called `c`."""
    collections.create("c")
    with collections.get("c") as collection:
        yield collection
