"""Indexes of the fields `content` and `parent` follow the store like the one of `context`."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain import Chunk
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.stores.port import CollectionStore, Scope, VectorField
from app.stores.prepared import PreparedDocument

EVERYTHING = Scope(None, None)
FIELDS: tuple[VectorField, ...] = ("content", "parent")
VectorOf = Callable[[str], NDArray[np.float32]]


@pytest.fixture
def put_enhanced(vector_of: VectorOf) -> Callable[[CollectionStore, str, Sequence[str]], None]:
    """Put a document whose pieces are the children of one parent, with vectors of every field."""

    def put(store: CollectionStore, document_id: str, pieces: Sequence[str]) -> None:
        registration = store.register_document(
            document_id, title="", metadata={}, media_type="text/plain", filename=None
        )
        text = "\n".join(pieces)
        starts = [sum(len(piece) + 1 for piece in pieces[:place]) for place in range(len(pieces))]
        children = [
            Chunk(i, start, start + len(piece), piece, 1, context="T", parent=len(pieces))
            for i, (start, piece) in enumerate(zip(starts, pieces, strict=True))
        ]
        parent = Chunk(len(pieces), 0, len(text), text, len(pieces), kind="parent")
        store.replace_document(
            PreparedDocument(
                id=document_id,
                registration=registration,
                etag=text,
                title="",
                metadata={},
                source_type="text",
                media_type="text/plain",
                filename=None,
                content_hash=text,
                settings_hash="",
                text=text,
                pages=(),
                extraction={},
                warnings=(),
                expires_at=None,
                chunks=[*children, parent],
                vectors=np.stack([vector_of(f"T {piece}") for piece in pieces]),
                content_vectors=np.stack([vector_of(piece) for piece in pieces]),
            )
        )

    return put


Put = Callable[[CollectionStore, str, Sequence[str]], None]


def nearest(opened: OpenCollection, vector: NDArray[np.float32], field: VectorField) -> list[int]:
    index = opened.index.of_field(field)
    assert index is not None
    return index.search(vector, 1, EVERYTHING).keys.tolist()


def files(opened: OpenCollection) -> set[str]:
    return {path.name for path in (opened.folder / "index").glob("*.npz")}


def test_a_standard_collection_has_one_dense_index_and_one_file(
    collections: OpenCollections, put: Put, vector_of: VectorOf
) -> None:
    collections.create("c")
    with collections.get("c") as opened:
        put(opened.store, "a", ["one", "two"])
        opened.catch_up()
        assert opened.index.fields == {}
        assert opened.index.of_field("content") is opened.index.dense
        assert opened.index.of_field("parent") is None
    collections.close()
    assert files(opened) == {"dense.npz"}


def test_every_field_is_found_by_its_own_vectors_and_after_opening_again(
    open_pool: Callable[[], OpenCollections], put_enhanced: Put, vector_of: VectorOf
) -> None:
    pool = open_pool()
    pool.create("c")
    with pool.get("c") as opened:
        put_enhanced(opened.store, "a", ["one", "two"])
        opened.catch_up()
    pool.close()
    assert files(opened) == {"dense.npz", "dense-content.npz", "dense-parent.npz"}

    with open_pool().get("c") as opened:
        assert {index.revision() for index in opened.index.followers()} == {opened.store.revision()}
        one, two = opened.store.chunk_keys().tolist()
        (parent,) = opened.store.chunk_keys("parent").tolist()
        assert nearest(opened, vector_of("two"), "content") == [two]
        assert nearest(opened, vector_of("T one"), "context") == [one]
        assert nearest(opened, vector_of("T one") + vector_of("T two"), "parent") == [parent]
        assert opened.verify() == []


def test_a_process_that_opened_the_collection_before_finds_fields_that_came_since(
    open_pool: Callable[[], OpenCollections], put: Put, put_enhanced: Put, vector_of: VectorOf
) -> None:
    one, other = open_pool(), open_pool()
    one.create("c")
    with one.get("c") as writing, other.get("c") as reading:
        put(writing.store, "plain", ["three"])
        reading.fresh()
        put_enhanced(writing.store, "fine", ["one", "two"])

        reading.fresh(frozenset(FIELDS))

        keys = {reading.store.chunks(name, limit=1, after=None)[0].chunk_key for name in ("plain", "fine")}
        assert set(reading.index.fields) == set(FIELDS)
        assert {
            *nearest(reading, vector_of("three"), "content"),
            *nearest(reading, vector_of("one"), "content"),
        } == keys
        assert reading.verify() == []


@pytest.mark.parametrize("field", FIELDS)
def test_a_rebuild_brings_back_what_a_field_lost_and_verify_names_it(
    opened: OpenCollection, put_enhanced: Put, field: VectorField
) -> None:
    put_enhanced(opened.store, "a", ["one", "two"])
    opened.catch_up()
    index = opened.index.fields[field]
    lost = index.keys().tolist()
    with index.writing():
        index.apply([], lost, index.revision())

    assert [difference["detail"] for difference in opened.verify()] == [
        f"the dense {field} index does not hold this chunk"
    ] * len(lost)
    opened.rebuild()
    assert opened.verify() == []


def test_a_deleted_document_leaves_every_field(opened: OpenCollection, put_enhanced: Put) -> None:
    put_enhanced(opened.store, "a", ["one", "two"])
    put_enhanced(opened.store, "b", ["three", "four"])
    opened.catch_up()
    opened.store.delete_documents(["a"])
    opened.catch_up()
    for field in FIELDS:
        assert opened.index.fields[field].keys().tolist() == opened.store.chunk_keys(field).tolist()
    assert opened.index.keyword.keys().tolist() == opened.store.chunk_keys().tolist()
