"""What every store promises; each engine of the registry passes this suite."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain import Chunk, DocumentState, Notice, Page
from app.errors import Cancelled, NotFound, Overtaken, Unavailable
from app.filters import Condition, Operator
from app.settings import Settings
from app.stores.port import CollectionStore, Scope
from app.stores.prepared import PreparedDocument
from app.stores.registry import STORES, create_store

DIMENSIONS = 8
EVERYTHING = Scope(None, None)
Prepare = Callable[..., PreparedDocument]


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CollectionStore]:
    opened = create_store(tmp_path, Settings(), request.param)
    yield opened
    opened.close()


def unit_vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return vector / np.linalg.norm(vector)


def prepare(
    store: CollectionStore, document_id: str, pieces: Sequence[str] = ("alpha ",), metadata: Any = None, **rest: Any
) -> PreparedDocument:
    """Register a document and return a version whose chunks are the pieces, one after the other."""
    registration = store.register_document(
        document_id, title=document_id, metadata=metadata or {}, media_type="text/plain", filename=None
    )
    chunks, start = [], 0
    for ordinal, piece in enumerate(pieces):
        chunks.append(Chunk(ordinal, start, start + len(piece), piece, token_count=len(piece.split())))
        start += len(piece)
    prepared = PreparedDocument(
        id=document_id,
        registration=registration,
        etag=f'"{document_id}"',
        title=document_id,
        metadata=metadata or {},
        source_type="text",
        media_type="text/plain",
        filename=None,
        content_hash=f"hash of {document_id}",
        settings_hash="settings",
        text="".join(pieces),
        pages=(),
        extraction={"parser": "text"},
        warnings=(),
        expires_at=None,
        chunks=chunks,
        vectors=np.stack([unit_vector(piece) for piece in pieces]),
    )
    return replace(prepared, **rest)


def put(store: CollectionStore, document_id: str, pieces: Sequence[str] = ("alpha ",), metadata: Any = None) -> None:
    store.replace_document(prepare(store, document_id, pieces, metadata))


def keys_of(store: CollectionStore, document_id: str) -> list[int]:
    return [chunk.chunk_key for chunk in store.chunks(document_id, limit=1000, after=None)]


# --- documents over time ---


def test_a_registered_document_is_pending_and_a_written_one_is_ready(store: CollectionStore) -> None:
    prepared = prepare(
        store,
        "leave",
        metadata={"team": "hr", "tags": ["a", None, {"deep": [1]}]},
        title="Leave policy",
        filename="leave.pdf",
        warnings=(Notice("pages_without_text", "two pages have none", {"pages": [2, 3]}),),
        expires_at=datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    )
    pending = store.document("leave")
    assert pending is not None
    assert (pending.state, pending.version, pending.chunk_count) == (DocumentState.PENDING, 0, 0)

    ready = store.replace_document(prepared)

    assert ready == store.document("leave")
    assert (ready.state, ready.version, ready.key) == (DocumentState.READY, 1, pending.key)
    assert (ready.title, ready.filename, ready.etag) == ("Leave policy", "leave.pdf", '"leave"')
    assert ready.metadata == {"team": "hr", "tags": ["a", None, {"deep": [1]}]}
    assert ready.warnings == ({"code": "pages_without_text", "detail": "two pages have none", "pages": [2, 3]},)
    assert ready.expires_at == datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert ready.created_at == pending.created_at <= ready.updated_at
    assert store.settings_hash("leave") == "settings"
    assert store.document("other") is None


def test_a_second_version_replaces_the_first_and_both_are_in_the_history(store: CollectionStore) -> None:
    put(store, "a", ["alpha "])
    second = prepare(store, "a", ["beta "], content_hash="other bytes", etag='"2"')
    store.replace_document(replace(second, keep_versions=1))

    assert store.text("a", 0, None) == "beta "
    assert [chunk.text for chunk in store.chunks("a", limit=10, after=None)] == ["beta "]
    history = store.versions("a", limit=10)
    assert [(line.version, line.etag, line.current) for line in history] == [(2, '"2"', True), (1, '"a"', False)]
    assert sorted(store.content_hashes()) == ["hash of a", "other bytes"]


def test_only_the_versions_before_the_present_one_that_are_to_be_kept_are_kept(store: CollectionStore) -> None:
    for number, text in enumerate(["one ", "two ", "three "], start=1):
        written = prepare(store, "a", [text], content_hash=f"bytes {number}", etag=f'"{number}"')
        chunking = {"strategy": "custom", "chunks": [{"text": text}]}
        store.replace_document(replace(written, keep_versions=1, chunking=chunking, extraction={"parser": text}))

    history = store.versions("a", limit=10)
    assert [(line.version, line.kept) for line in history] == [(3, True), (2, True), (1, False)]
    assert [line.chunking is not None for line in history] == [True, True, False]
    assert [line.extraction is not None for line in history] == [True, True, False]
    assert sorted(store.content_hashes()) == ["bytes 2", "bytes 3"]
    assert store.forget_versions(0) == 1
    assert sorted(store.content_hashes()) == ["bytes 3"]


def test_vectors_of_a_kept_version_are_known_until_it_is_forgotten(store: CollectionStore) -> None:
    first = prepare(store, "a", ["stays ", "goes "])
    store.replace_document(first)
    goes = first.chunks[1].text_hash
    for number, text in enumerate(["new ", "newer "], start=2):
        later = prepare(store, "a", ["stays ", text], etag=f'"{number}"')
        store.replace_document(replace(later, keep_versions=2))

    assert np.array_equal(store.known_vectors([goes])[goes], first.vectors[1])
    store.forget_versions(1)
    assert store.known_vectors([goes]) == {}


def test_documents_that_have_not_changed_for_too_long_are_told_with_the_expired(store: CollectionStore) -> None:
    put(store, "old", ["alpha "])
    between = store.document("old").updated_at  # type: ignore[union-attr]
    put(store, "new", ["beta "])
    now = datetime.now(UTC)
    assert store.expired_documents(now, 10) == []
    assert store.expired_documents(now, 10, unchanged_since=between) == ["old"]


def test_a_ready_version_answers_while_a_newer_one_is_in_work_and_after_it_failed(store: CollectionStore) -> None:
    put(store, "a", ["alpha "])
    registration = store.register_document("a", title="new", metadata={"new": 1}, media_type="x/y", filename="n")
    store.set_state("a", registration, "processing")
    store.set_state("a", registration, "failed", {"code": "embedding_unavailable"}, {"parser": "none"})

    document = store.document("a")
    assert document is not None
    assert (document.state, document.title, document.metadata) == (DocumentState.READY, "a", {})
    assert document.error == {"code": "embedding_unavailable"}
    assert document.extraction == {"parser": "text"}
    assert store.text("a", 0, None) == "alpha "
    assert len(store.nearest(unit_vector("alpha "), 5, EVERYTHING)) == 1


def test_a_document_that_never_was_ready_shows_its_failure_and_a_new_attempt_clears_it(store: CollectionStore) -> None:
    registration = store.register_document("a", title="", metadata={}, media_type="x/y", filename=None)
    store.set_state("a", registration, "failed", {"code": "no_extractable_text"}, {"pages": 1})
    failed = store.document("a")
    assert failed is not None
    assert (failed.state, failed.error, failed.extraction) == (
        DocumentState.FAILED,
        {"code": "no_extractable_text"},
        {"pages": 1},
    )

    store.register_document("a", title="t", metadata={"x": 1}, media_type="x/y", filename=None)

    again = store.document("a")
    assert again is not None
    assert (again.state, again.error, again.title, again.metadata) == (DocumentState.PENDING, None, "t", {"x": 1})


@pytest.mark.parametrize("meanwhile", ["deleted", "deleted and registered"])
def test_a_write_whose_registration_is_outdated_is_refused_and_changes_nothing(
    store: CollectionStore, meanwhile: str
) -> None:
    stale = prepare(store, "a", ["stale "])
    store.delete_documents(["a"])
    if "registered" in meanwhile:
        store.register_document("a", title="", metadata={}, media_type="x/y", filename=None)

    with pytest.raises(Cancelled):
        store.replace_document(stale)
    store.set_state("a", stale.registration, "failed", {"code": "late"})

    document = store.document("a")
    assert document is None or (document.state, document.error) == (DocumentState.PENDING, None)
    assert store.revision() == 0


def test_put_delete_put_begins_anew_with_keys_that_were_never_used(store: CollectionStore) -> None:
    put(store, "a", ["alpha ", "beta "])
    before, first = keys_of(store, "a"), store.document("a")
    assert store.delete_documents(["a", "unknown"]) == 1
    assert store.document("a") is None
    assert store.chunk_keys().tolist() == []
    assert store.delete_documents(["a"]) == 0

    put(store, "a", ["alpha ", "beta "])

    second = store.document("a")
    assert first is not None
    assert second is not None
    assert (second.version, second.key > first.key) == (1, True)
    assert min(keys_of(store, "a")) > max(before)


def test_the_same_bytes_under_other_ids_are_told(store: CollectionStore) -> None:
    for document_id in ("a", "b", "c"):
        store.replace_document(prepare(store, document_id, content_hash="same"))
    prepare(store, "d", content_hash="same")
    assert store.documents_with_content("same") == ["a", "b", "c"]
    assert store.documents_with_content("same", limit=2) == ["a", "b"]


def test_an_update_changes_metadata_without_a_new_version_or_change(store: CollectionStore) -> None:
    put(store, "a", metadata={"team": "hr"})
    revision = store.revision()
    updated = store.update_document("a", etag='"new"', title="T", metadata={"team": "it"}, expires_at=None)

    assert updated == store.document("a")
    assert (updated.version, updated.etag, updated.title, updated.metadata) == (1, '"new"', "T", {"team": "it"})
    assert store.revision() == revision
    assert store.versions("a", limit=10)[0].etag == '"new"'
    assert store.scope(Condition("team", Operator.EQ, "hr"), None).is_empty
    assert not store.scope(Condition("team", Operator.EQ, "it"), None).is_empty
    with pytest.raises(NotFound):
        store.update_document("b", etag="", title="", metadata={}, expires_at=None)


def test_a_change_or_a_deletion_of_what_another_writer_has_changed_is_refused(store: CollectionStore) -> None:
    put(store, "a", metadata={"team": "hr"})
    put(store, "b")
    read = store.document("a")
    assert read is not None
    store.update_document("a", etag='"theirs"', title="T", metadata={"team": "it"}, expires_at=None)

    with pytest.raises(Overtaken):
        store.update_document("a", etag='"mine"', title="", metadata={}, expires_at=None, expected_etag=read.etag)
    with pytest.raises(Overtaken):
        store.delete_documents(["b", "a"], expected_etag=read.etag)
    left = store.document("a")
    assert left is not None
    assert (left.etag, left.metadata) == ('"theirs"', {"team": "it"})
    assert store.document("b") is not None

    updated = store.update_document(
        "a", etag='"mine"', title="", metadata={}, expires_at=None, expected_etag='"theirs"'
    )
    assert updated.etag == '"mine"'
    assert store.delete_documents(["a"], expected_etag='"mine"') == 1


# --- texts, pages, chunks ---


def test_a_text_is_read_by_code_points(store: CollectionStore) -> None:
    text = "a猫👩‍👩‍👧é\n" * 3
    store.replace_document(prepare(store, "a", [text]))
    assert store.text("a", 0, None) == text
    assert store.text("a", 2, 9) == text[2:9]
    assert store.text("a", len(text), None) == store.text("a", 10**9, None) == store.text("a", 9, 3) == ""
    with pytest.raises(NotFound):
        store.text("b", 0, None)


def test_pages_are_kept_with_the_version(store: CollectionStore) -> None:
    pages = [Page(1, 0, 3), Page(2, 3, 6)]
    store.replace_document(prepare(store, "a", pages=pages))
    assert store.pages("a") == pages
    put(store, "a", ["beta "])
    assert store.pages("a") == []


def test_chunks_come_by_ordinal_and_in_parts(store: CollectionStore) -> None:
    put(store, "a", ["one ", "two ", "three ", "four "])
    first = store.chunks("a", limit=3, after=None)
    assert [chunk.text for chunk in first] == ["one ", "two ", "three "]
    assert [chunk.text for chunk in store.chunks("a", limit=3, after=first[-1].ordinal)] == ["four "]
    assert len({chunk.chunk_id for chunk in store.chunks("a", limit=9, after=None)}) == 4


def test_found_chunks_come_in_the_order_asked_and_leave_out_what_is_gone(store: CollectionStore) -> None:
    chunk = Chunk(0, 0, 6, "alpha ", 2, "Title", ("Leave", "Parental"), 4, 5)
    store.replace_document(prepare(store, "a", metadata={"n": 1}, chunks=[chunk]))
    put(store, "b", ["beta ", "gamma "])
    (alpha,), (beta, gamma) = keys_of(store, "a"), keys_of(store, "b")

    found = store.found_chunks([gamma, 10**9, alpha, beta])

    assert [(piece.document_id, piece.text) for piece in found] == [("b", "gamma "), ("a", "alpha "), ("b", "beta ")]
    assert (found[1].heading_path, found[1].page_start, found[1].page_end) == (("Leave", "Parental"), 4, 5)
    assert (found[1].metadata, found[1].token_count, found[1].start, found[1].end) == ({"n": 1}, 2, 0, 6)
    assert store.indexed_chunks([alpha])[0].indexed_text == "Title\nalpha "


# --- the change log ---


def test_the_log_tells_an_index_all_it_must_do(store: CollectionStore) -> None:
    assert (store.revision(), store.oldest_revision(), store.changes(0, 10)) == (0, 0, [])
    put(store, "a", ["one ", "two "])
    put(store, "b", ["three "])
    store.delete_documents(["a"])

    lines = store.changes(0, 100)
    assert [line.revision for line in lines] == sorted(line.revision for line in lines)
    assert lines[-1].revision == store.revision()
    assert store.oldest_revision() == lines[0].revision - 1
    assert store.changes(lines[1].revision, 2) == lines[2:4]
    followed: set[int] = set()
    for line in lines:
        (followed.add if line.operation == "upsert" else followed.discard)(line.chunk_key)
    assert sorted(followed) == store.chunk_keys().tolist() == keys_of(store, "b")


def test_a_chunk_that_stays_the_same_keeps_its_key_and_is_not_logged(store: CollectionStore) -> None:
    put(store, "a", ["one ", "two ", "same ", "same "])
    one, two, *same = keys_of(store, "a")
    revision = store.revision()

    put(store, "a", ["new ", "same ", "one ", "same "])

    new, *kept = keys_of(store, "a")
    assert kept == [same[0], one, same[1]]
    assert [(line.chunk_key, line.operation) for line in store.changes(revision, 10)] == [
        (two, "delete"),
        (new, "upsert"),
    ]
    assert [(c.start, c.text) for c in store.found_chunks(kept)] == [(4, "same "), (9, "one "), (13, "same ")]


def test_a_chunk_with_a_new_vector_is_a_new_chunk(store: CollectionStore) -> None:
    put(store, "a", ["one "])
    (before,) = keys_of(store, "a")
    store.replace_document(prepare(store, "a", ["one "], vectors=unit_vector("other")[None]))
    assert keys_of(store, "a") != [before]


def test_a_rebuild_reads_every_chunk_in_parts(store: CollectionStore) -> None:
    for name in "abc":
        put(store, name, [f"{name} {i} " for i in range(5)])
    read, after = [], 0
    while part := store.all_chunks(after, 4):
        read += part
        after = part[-1].chunk_key
    assert [chunk.chunk_key for chunk in read] == store.chunk_keys().tolist()
    for chunk in read:
        np.testing.assert_array_equal(chunk.vector, unit_vector(chunk.indexed_text))


# --- the whole ---


def test_counts_and_a_clean_verification(store: CollectionStore) -> None:
    put(store, "a", ["one ", "two "], {"x": [1, "b"], "when": "2024-02-03"})
    put(store, "a", ["two ", "three "])
    prepare(store, "b")
    stats = store.stats()
    assert stats.documents == {"pending": 1, "processing": 0, "ready": 1, "failed": 0}
    assert (stats.chunks, stats.characters, stats.revision) == (2, 10, store.revision())
    assert stats.database_bytes > 0
    assert store.verify() == []


def test_a_closed_store_refuses_work_with_a_sentence(store: CollectionStore) -> None:
    store.close()
    with pytest.raises(Unavailable):
        store.revision()


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    for engine in STORES:
        with pytest.raises(NotFound):
            create_store(tmp_path / "gone", Settings(), engine)
    assert not (tmp_path / "gone").exists()
