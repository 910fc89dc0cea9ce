"""What every store promises of vectors, of parents, fields and languages, and of contexts that a model wrote."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain import Chunk, text_hash
from app.embedding_space import EmbeddingSpace
from app.errors import EmbeddingModelMismatch
from app.settings import Settings
from app.stores.port import CollectionStore, Scope
from app.stores.prepared import PreparedDocument
from app.stores.registry import STORES, create_store

DIMENSIONS = 8
EVERYTHING = Scope(None, None)


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CollectionStore]:
    opened = create_store(tmp_path, Settings(), request.param)
    yield opened
    opened.close()


def unit_vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def prepare(store: CollectionStore, document_id: str, pieces: Sequence[str], **rest: Any) -> PreparedDocument:
    """Register a document and return a version whose chunks are the pieces, one after the other."""
    registration = store.register_document(
        document_id, title=document_id, metadata={}, media_type="text/plain", filename=None
    )
    starts = [sum(map(len, pieces[:place])) for place in range(len(pieces))]
    prepared = PreparedDocument(
        id=document_id,
        registration=registration,
        etag="",
        title=document_id,
        metadata={},
        source_type="text",
        media_type="text/plain",
        filename=None,
        content_hash="",
        settings_hash="",
        text="".join(pieces),
        pages=(),
        extraction={},
        warnings=(),
        expires_at=None,
        chunks=[
            Chunk(i, start, start + len(piece), piece, token_count=1)
            for i, (start, piece) in enumerate(zip(starts, pieces, strict=True))
        ],
        vectors=np.stack([unit_vector(piece) for piece in pieces]),
    )
    return replace(prepared, **rest)


def put(store: CollectionStore, document_id: str, pieces: Sequence[str]) -> None:
    store.replace_document(prepare(store, document_id, pieces))


def keys_of(store: CollectionStore, document_id: str) -> list[int]:
    return [chunk.chunk_key for chunk in store.chunks(document_id, limit=1000, after=None)]


def nested(store: CollectionStore, document_id: str, pieces: Sequence[str], **rest: Any) -> PreparedDocument:
    """Prepare a document whose children stand two by two in a parent, but for a last one that stands alone."""
    prepared = prepare(store, document_id, pieces)
    count = len(pieces)
    children = [
        replace(
            child, context=document_id, parent=count + child.ordinal // 2 if child.ordinal // 2 < count // 2 else None
        )
        for child in prepared.chunks
    ]
    pairs = [children[2 * i : 2 * i + 2] for i in range(count // 2)]
    parents = [
        Chunk(count + i, one.start, two.end, one.text + two.text, one.token_count + two.token_count, kind="parent")
        for i, (one, two) in enumerate(pairs)
    ]
    vectors = np.stack([unit_vector(child.indexed_text) for child in children])
    return replace(prepared, chunks=[*children, *parents], vectors=vectors, **rest)


def enhanced(store: CollectionStore, document_id: str, pieces: Sequence[str]) -> PreparedDocument:
    content = np.stack([unit_vector(piece) for piece in pieces])
    return nested(store, document_id, pieces, content_vectors=content)


def test_parents_are_read_but_neither_found_nor_counted(store: CollectionStore) -> None:
    document = store.replace_document(nested(store, "a", ["one ", "two ", "three ", "four ", "five "]))
    children = store.chunks("a", limit=10, after=None)
    parents = store.chunks("a", limit=10, after=None, kind="parent")

    assert document.chunk_count == store.stats().chunks == len(children) == 5
    assert [(parent.text, parent.start, parent.end) for parent in parents] == [
        ("one two ", 0, 8),
        ("three four ", 8, 19),
    ]
    assert {parent.kind for parent in parents} == {"parent"}
    assert {child.kind for child in children} == {"child"}
    of_children = store.parents_of([child.chunk_key for child in children])
    assert [of_children.get(child.chunk_key) for child in children] == [parents[0]] * 2 + [parents[1]] * 2 + [None]
    assert store.children_of([parents[1].chunk_key, 10**6]) == {
        parents[1].chunk_key: [children[2].chunk_key, children[3].chunk_key]
    }
    keys = [child.chunk_key for child in children]
    assert store.chunk_keys().tolist() == keys
    assert sorted(line.chunk_key for line in store.changes(0, 100)) == keys
    assert [chunk.chunk_key for chunk in store.all_chunks(0, 100)] == keys
    assert store.indexed_chunks([parents[0].chunk_key]) == []
    assert (store.vector_fields(), store.chunk_keys("parent").tolist()) == (frozenset(), [])
    assert store.verify() == []


def test_children_and_parents_that_stay_keep_their_keys(store: CollectionStore) -> None:
    store.replace_document(enhanced(store, "a", ["one ", "two ", "three ", "four "]))
    one, two, three, four = keys_of(store, "a")
    first, second = (parent.chunk_key for parent in store.chunks("a", limit=9, after=None, kind="parent"))
    revision = store.revision()

    store.replace_document(enhanced(store, "a", ["one ", "two ", "three ", "new "]))

    kept_first, new_second = (parent.chunk_key for parent in store.chunks("a", limit=9, after=None, kind="parent"))
    assert keys_of(store, "a")[:3] == [one, two, three]
    assert kept_first == first
    assert {(line.chunk_key, line.operation) for line in store.changes(revision, 100)} == {
        (four, "delete"),
        (second, "delete"),
        (keys_of(store, "a")[3], "upsert"),
        (new_second, "upsert"),
    }
    assert store.parents_of([three])[three].chunk_key == new_second
    assert store.verify() == []


def test_each_field_gives_its_own_vectors(store: CollectionStore) -> None:
    pieces = ["one ", "two ", "three "]
    store.replace_document(enhanced(store, "a", pieces))
    one, two, three = keys_of(store, "a")
    (parent,) = store.chunks("a", limit=9, after=None, kind="parent")
    middle = unit_vector("a\none ") + unit_vector("a\ntwo ")
    expected = {
        "context": {key: unit_vector(f"a\n{piece}") for key, piece in zip((one, two, three), pieces, strict=True)},
        "content": {key: unit_vector(piece) for key, piece in zip((one, two, three), pieces, strict=True)},
        "parent": {parent.chunk_key: middle / np.linalg.norm(middle)},
    }

    assert store.vector_fields() == {"content", "parent"}
    query = unit_vector("query")
    for field, vectors in expected.items():
        chunks = store.all_chunks(0, 100, field)
        assert [chunk.chunk_key for chunk in chunks] == store.chunk_keys(field).tolist() == sorted(vectors)
        for chunk in (*chunks, *store.indexed_chunks(sorted(vectors), field)):
            np.testing.assert_allclose(chunk.vector, vectors[chunk.chunk_key], atol=1e-6)
        assert store.similarities(query, np.array([*vectors, 10**6]), field) == pytest.approx(
            {key: float(vector @ query) for key, vector in vectors.items()}, abs=1e-6
        )
    # A search's default is unmoved by what stands beside it.
    assert {key for key, _ in store.nearest(query, 9, EVERYTHING)} == {one, two, three}


def test_a_document_that_is_not_enhanced_yet_is_in_the_field_of_clean_texts_as_it_is(store: CollectionStore) -> None:
    store.replace_document(nested(store, "plain", ["one ", "two "]))
    store.replace_document(enhanced(store, "fine", ["three ", "four "]))
    assert store.chunk_keys("content").tolist() == store.chunk_keys().tolist()
    vectors = {chunk.chunk_key: chunk.vector for chunk in store.all_chunks(0, 100, "content")}
    np.testing.assert_array_equal(vectors[keys_of(store, "plain")[0]], unit_vector("plain\none "))
    np.testing.assert_array_equal(vectors[keys_of(store, "fine")[0]], unit_vector("three "))


def test_a_chunk_whose_clean_text_gets_a_vector_is_told_to_the_indexes(store: CollectionStore) -> None:
    store.replace_document(nested(store, "a", ["one ", "two "]))
    before = keys_of(store, "a")
    store.replace_document(enhanced(store, "a", ["one ", "two "]))
    after = keys_of(store, "a")
    assert not set(before) & set(after)
    assert {line.chunk_key for line in store.changes(2, 100) if line.operation == "upsert"} >= set(after)
    store.replace_document(nested(store, "a", ["one ", "two "]))
    assert store.vector_fields() == frozenset()
    assert store.verify() == []


def test_the_vector_of_a_clean_text_is_known_by_its_hash(store: CollectionStore) -> None:
    store.replace_document(enhanced(store, "a", ["one ", "two "]))
    hashes = [text_hash("one "), text_hash("a\none "), text_hash("one two ")]
    assert set(store.known_vectors(hashes)) == set(hashes[:2])


def test_written_contexts_are_known_while_a_job_works_and_with_the_version(store: CollectionStore) -> None:
    assert store.known_contexts("job", "a", "a") == {}
    store.stage_contexts("job", {text_hash("one "): "staged", text_hash("two "): "staged too"})
    store.stage_contexts("job", {text_hash("one "): "again"})
    assert store.known_contexts("job", "a", "a") == {text_hash("one "): "staged", text_hash("two "): "staged too"}
    assert store.known_contexts("another job", "a", "a") == {}

    prepared = prepare(store, "a", ["one ", "plain "])
    one, plain = prepared.chunks
    store.replace_document(
        replace(prepared, chunks=[replace(one, context="T\nthe model's", written_context="the model's"), plain])
    )
    store.drop_staged("job")

    assert store.known_contexts("job", "a", "a") == {text_hash("one "): "the model's"}
    assert store.known_contexts("job", "a", "another title") == store.known_contexts("job", "b", "a") == {}


def test_written_contexts_of_a_kept_version_are_known_until_it_is_forgotten(store: CollectionStore) -> None:
    def write(piece: str, context: str, title: str) -> None:
        prepared = prepare(store, "a", [piece], title=title, keep_versions=1)
        described = [replace(chunk, context=context, written_context=context) for chunk in prepared.chunks]
        store.replace_document(replace(prepared, chunks=described))

    write("one ", "first", "T")
    write("two ", "second", "T")
    assert store.known_contexts("job", "a", "T") == {text_hash("one "): "first", text_hash("two "): "second"}
    write("two ", "third", "U")
    assert store.known_contexts("job", "a", "T") == {text_hash("two "): "second"}
    assert store.known_contexts("job", "a", "U") == {text_hash("two "): "third"}


def test_exact_ranking_agrees_with_numpy(store: CollectionStore) -> None:
    pieces = [f"piece {i} " for i in range(60)]
    put(store, "a", pieces[:40])
    put(store, "b", pieces[40:])
    query = unit_vector("query")
    expected = {key: float(unit_vector(piece) @ query) for key, piece in zip(store.chunk_keys(), pieces, strict=True)}

    found = store.similarities(query, np.append(store.chunk_keys()[::2], 10**6))
    assert found == pytest.approx({key: expected[key] for key in store.chunk_keys()[::2].tolist()}, abs=1e-6)
    assert store.similarities(query, np.zeros(0, np.int64)) == {}

    best = sorted(expected, key=lambda key: -expected[key])
    assert [key for key, _ in store.nearest(query, 10, EVERYTHING)] == best[:10]
    in_b = set(keys_of(store, "b"))
    of_b = store.nearest(query, 5, store.scope(None, ["b"]))
    assert [key for key, _ in of_b] == [key for key in best if key in in_b][:5]
    assert dict(of_b) == pytest.approx({key: expected[key] for key, _ in of_b}, abs=1e-6)


def test_a_zero_vector_is_like_nothing(store: CollectionStore) -> None:
    store.replace_document(prepare(store, "a", ["alpha "], vectors=np.zeros((1, DIMENSIONS), np.float32)))
    assert store.similarities(unit_vector("q"), store.chunk_keys()) == {int(store.chunk_keys()[0]): 0.0}


def test_the_first_space_is_fixed_and_another_is_refused(store: CollectionStore) -> None:
    space = EmbeddingSpace("local", "e5", 2, (0.6, 0.8))
    assert store.embedding_space() is None
    store.set_embedding_space(space)
    store.set_embedding_space(replace(space, provider="remote"))
    fixed = store.embedding_space()
    assert fixed is not None
    assert (fixed.model, fixed.dimensions) == ("e5", 2)
    assert fixed.fingerprint == pytest.approx((0.6, 0.8))
    for other in (replace(space, model="bge"), replace(space, dimensions=3), replace(space, fingerprint=(0.8, -0.6))):
        with pytest.raises(EmbeddingModelMismatch):
            store.set_embedding_space(other)


def test_languages_are_told_by_how_many_documents_have_them(store: CollectionStore) -> None:
    assert store.languages() == ()
    for number, language in enumerate(["de", "fr", "es", "fr", None, "es", "fr", None, None, None]):
        store.replace_document(prepare(store, f"d{number}", ["one "], language=language))
    assert store.languages() == ("fr", "es", "de")
    store.delete_documents(["d1", "d3"])
    assert store.languages() == ("es", "de", "fr")


def test_documents_and_vectors_of_children_are_told_by_chunk_and_of_nothing_else(store: CollectionStore) -> None:
    store.replace_document(nested(store, "a", ["one ", "two ", "three "]))
    put(store, "b", ["four "])
    put(store, "gone", ["five "])
    (of_b,), (gone,) = keys_of(store, "b"), keys_of(store, "gone")
    store.delete_documents(["gone"])
    parents = [chunk.chunk_key for chunk in store.chunks("a", limit=10, after=None, kind="parent")]
    asked = [of_b, gone, *parents, *keys_of(store, "a")]
    documents = {name: store.document(name).key for name in ("a", "b")}  # type: ignore[union-attr]

    keys, of_documents = store.document_keys(asked)
    assert dict(zip(keys.tolist(), of_documents.tolist(), strict=True)) == {
        of_b: documents["b"],
        **dict.fromkeys(keys_of(store, "a"), documents["a"]),
    }
    vectors = store.vectors_of(asked)
    assert vectors.keys() == set(keys.tolist())
    for chunk in store.indexed_chunks(asked):
        assert np.array_equal(vectors[chunk.chunk_key], chunk.vector)
    assert [len(column) for column in store.document_keys([])] == [0, 0]
    assert store.vectors_of([]) == {}
