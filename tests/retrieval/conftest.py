"""A collection of real parts to search: SQLite, tantivy, faiss and the hashed embedder, in a temporary folder."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from app.domain import Chunk
from app.errors import FootnoteError
from app.indexes.analysis import Analyzer
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.indexes.registry import create_index
from app.inference.embedders.hashed import HashedEmbedder
from app.inference.port import Embedder
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import SearchResult, search
from app.settings import Settings
from app.stores.prepared import PreparedDocument
from app.stores.registry import create_store, open_store

FRUIT = ("apples grow on trees", "pears grow on trees", "engines need oil", "wheels need air")
"""The pieces of the document `fruit` of an enhanced shelf."""


class FailingEmbedder(HashedEmbedder):
    """The hashed embedder until `failure` is set; counts its calls."""

    def __init__(self) -> None:
        self.failure: FootnoteError | None = None
        self.calls = 0

    def embed_queries(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.failure:
            raise self.failure
        return super().embed_queries(texts)


class Shelf:
    """An open collection called `shelf`, with documents put straight into its store."""

    def __init__(self, opened: OpenCollection, embedder: FailingEmbedder) -> None:
        self.opened = opened
        self.embedder = embedder
        self.settings = Settings()

    def put(self, document_id: str, *texts: str, embedder: Embedder | None = None, **metadata: Any) -> None:
        """Put a ready document of one chunk per text."""
        embedder = embedder or HashedEmbedder()
        store = self.opened.store
        store.set_embedding_space(embedder.space)
        registration = store.register_document(
            document_id, title=document_id, metadata=metadata, media_type="text/plain", filename=None
        )
        whole = "\n".join(texts)
        starts = [sum(len(text) + 1 for text in texts[:place]) for place in range(len(texts))]
        digest = hashlib.sha256(whole.encode()).hexdigest()
        store.replace_document(
            PreparedDocument(
                id=document_id,
                registration=registration,
                etag=digest,
                title=document_id,
                metadata=metadata,
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
                chunks=[
                    Chunk(ordinal, start, start + len(text), text, len(text))
                    for ordinal, (start, text) in enumerate(zip(starts, texts, strict=True))
                ],
                vectors=embedder.embed_passages(texts),
                language=metadata.get("language"),
            )
        )

    def search(self, query: str, embedder: Embedder | None = None, **options: Any) -> SearchResult:
        """Search with the options of `build_plan`."""
        plan = build_plan(query, self.settings, **options)
        return search(self.opened, Models(embedder or self.embedder), "shelf", plan)

    def find(self, query: str, **options: Any) -> list[str]:
        """Return the ids of the documents found, best first."""
        return [passage.document_id for passage in self.search(query, **options).passages]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    analyzer = Analyzer()
    pool = OpenCollections(
        tmp_path / "collections",
        create_store=partial(create_store, settings=Settings(data=tmp_path)),
        open_store=partial(open_store, settings=Settings(data=tmp_path)),
        open_index=partial(create_index, signature=analyzer.signature),
        analyzer=analyzer,
        limit=1,
    )
    pool.create("shelf")
    with pool.get("shelf") as opened:
        yield Shelf(opened, FailingEmbedder())
    pool.close()


@pytest.fixture
def nested(shelf: Shelf) -> Callable[..., None]:
    """Put a document whose chunks, with the context `orchard`, stand in parents of so many of them each."""
    store, embedder = shelf.opened.store, HashedEmbedder()

    def put(document_id: str, texts: Sequence[str], sizes: Sequence[int], **metadata: Any) -> None:
        real = store.replace_document

        def nest(prepared: PreparedDocument) -> Any:
            ends = list(accumulate(sizes))
            inside = [[*range(end - size, end)] for size, end in zip(sizes, ends, strict=True)]
            of_child = {child: len(texts) + place for place, children in enumerate(inside) for child in children}
            children = [replace(each, context="orchard", parent=of_child[each.ordinal]) for each in prepared.chunks]
            spans = [(children[first].start, children[last].end) for first, *_, last in inside]
            parents = [
                Chunk(len(texts) + place, start, end, prepared.text[start:end], 8, kind="parent")
                for place, (start, end) in enumerate(spans)
            ]
            return real(
                replace(
                    prepared,
                    chunks=[*children, *parents],
                    vectors=embedder.embed_passages([child.indexed_text for child in children]),
                    content_vectors=embedder.embed_passages([child.text for child in children]),
                )
            )

        store.replace_document = nest  # type: ignore[method-assign]
        shelf.put(document_id, *texts, **metadata)
        store.replace_document = real  # type: ignore[method-assign]

    return put


@pytest.fixture
def enhanced(shelf: Shelf, nested: Callable[..., None]) -> Shelf:
    """The shelf with a document of two parents with two children each, their context the word `orchard`."""
    nested("fruit", FRUIT, (2, 2))
    return shelf
