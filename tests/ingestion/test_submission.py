from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.collections import Collection
from app.domain import Document, DocumentState
from app.errors import PreconditionFailed
from app.ingestion.sources import Original
from app.ingestion.submission import (
    JobPayload,
    Precondition,
    Submission,
    etag_of,
    merge_patch,
    settings_hash,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def collection(**settings: Any) -> Collection:
    return Collection("col_1", "c", None, None, {"embedding": {"model": "hashed"}, **settings}, NOW, NOW)


def document(etag: str | None = '"a"') -> Document:
    return Document(
        1,
        "d",
        DocumentState.READY,
        1,
        etag,
        "",
        {},
        "text",
        "text/plain",
        None,
        "00",
        1,
        1,
        None,
        (),
        None,
        NOW,
        NOW,
        None,
    )


def submission(**fields: Any) -> Submission:
    return Submission("d", Original("ab" * 32, 3), **fields)


def test_equal_bytes_metadata_and_settings_have_one_etag() -> None:
    first = etag_of("00", "s", {"a": 1, "b": [1, 2]}, NOW)
    assert first == etag_of("00", "s", {"b": [1, 2], "a": 1}, NOW)
    assert first.startswith('"sha256-')


@pytest.mark.parametrize(
    "other",
    [("01", "s", {"a": 1}, NOW), ("00", "t", {"a": 1}, NOW), ("00", "s", {"a": 2}, NOW), ("00", "s", {"a": 1}, None)],
)
def test_a_change_of_bytes_settings_metadata_or_expiry_changes_the_etag(other: Any) -> None:
    assert etag_of("00", "s", {"a": 1}, NOW) != etag_of(*other)


@pytest.mark.parametrize("change", [{"title": "t"}, {"filename": "f.md"}, {"media_type": "text/markdown"}])
def test_what_decides_how_bytes_are_read_is_in_the_settings_hash(change: dict[str, str]) -> None:
    assert settings_hash(collection(), submission()) != settings_hash(collection(), submission(**change))


def test_another_chunking_is_another_settings_hash_and_a_move_to_another_model_is_none() -> None:
    plain = settings_hash(collection(), submission())
    assert plain != settings_hash(collection(chunking={"size": 500}), submission())
    assert plain == settings_hash(collection(embedding={"model": "other"}), submission())
    assert plain == settings_hash(collection(), submission(metadata={"team": "hr"}))


def test_a_payload_survives_json_and_hides_the_password() -> None:
    payload = JobPayload.of(submission(password="foo", expires_at=NOW), '"e"', "s", Precondition('"m"', True))
    assert payload.expires == NOW
    assert payload.precondition == Precondition('"m"', True)
    assert "foo" not in repr(payload)
    assert "foo" not in repr(submission(password="foo"))


def test_create_only_refuses_an_existing_document() -> None:
    Precondition(create_only=True).check("d", None)
    with pytest.raises(PreconditionFailed):
        Precondition(create_only=True).check("d", document())


def test_if_match_refuses_another_etag_and_a_missing_document() -> None:
    Precondition(if_match='"a"').check("d", document())
    Precondition(if_match="*").check("d", document())
    for existing in (document('"b"'), document(None), None):
        with pytest.raises(PreconditionFailed):
            Precondition(if_match='"a"').check("d", existing)
    with pytest.raises(PreconditionFailed):
        Precondition(if_match="*").check("d", None)


def test_a_merge_patch_adds_replaces_and_removes() -> None:
    before = {"a": {"b": "c", "d": 1}, "e": [1], "f": 1}
    patch = {"a": {"b": "x", "d": None}, "e": [2, 3], "f": None, "g": {"h": None, "i": 1}}
    assert merge_patch(before, patch) == {"a": {"b": "x"}, "e": [2, 3], "g": {"i": 1}}


plain_objects = st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.integers(), max_size=2), max_size=4)


@given(plain_objects, plain_objects)
def test_a_patch_without_null_is_there_afterwards(before: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge_patch(before, patch)
    assert {name: merged[name] for name in patch} == patch
    assert merge_patch(merged, patch) == merged
