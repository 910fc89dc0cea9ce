import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.api.json_body import MAX_DEPTH, parse_json
from app.errors import InvalidRequest

JSON = {"Content-Type": "application/json"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_json_can_say_comes_out_as_it_was(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b"{", "line 1, column 2"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 1, "a": 2}', "stands twice"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nesting"),
        (b"[" * 100_000 + b"]" * 100_000, "nesting"),
        (b"9" * 5000, "digits"),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else None,
)
def test_json_that_is_not_sound_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_json(body, "query:filter")
    assert refused.value.code == "invalid_json"
    assert reason in refused.value.detail
    assert refused.value.errors[0].pointer == "query:filter"


def test_lone_surrogates_are_replaced_but_stay_in_the_text_of_documents() -> None:
    body = rb'{"text": "a\ud800", "title": "b\udfff", "metadata": {"text": "c\ud800", "\ud800": ["\ud83d\ude00"]}}'
    parsed = parse_json(body, may_hold_documents=True)
    assert parsed["text"] == "a\ud800"
    assert parsed["title"] == "b\ufffd"
    assert parsed["metadata"] == {"text": "c\ufffd", "\ufffd": ["😀"]}
    batch = parse_json(b'{"documents": [' + body + b"]}", may_hold_documents=True)
    assert batch["documents"][0]["text"] == "a\ud800"
    assert parse_json(body)["text"] == "a\ufffd"


def test_a_body_that_is_not_declared_as_json_is_unsupported(admin: TestClient, collection: str) -> None:
    answer = admin.post(
        f"/v1/collections/{collection}/search", content=b'{"query":"x"}', headers={"Content-Type": "text/plain"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_compressed_body_is_unsupported(admin: TestClient, collection: str) -> None:
    answer = admin.post(
        f"/v1/collections/{collection}/search", content=b"\x1f\x8b", headers={**JSON, "Content-Encoding": "gzip"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_no_body_at_all_is_named(admin: TestClient, collection: str) -> None:
    answer = admin.post(f"/v1/collections/{collection}/search", headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"pointer": "", "code": "missing", "detail": "a JSON body is required"}]


@pytest.mark.parametrize("has_length", [True, False], ids=["with a length", "without a length"])
def test_a_body_above_the_limit_is_refused_with_the_setting(
    started: Callable[..., TestClient], *, has_length: bool
) -> None:
    client = started(max_json_bytes=1000)
    body = json.dumps({"query": "x" * 2000}).encode()
    content = body if has_length else iter([body[:900], body[900:]])
    client.put("/v1/collections/c", json={})
    answer = client.post("/v1/collections/c/search", content=content, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
    assert "FOOTNOTE_MAX_JSON_BYTES" in answer.json()["detail"]


def test_a_large_body_is_read_as_well_as_a_small_one(admin: TestClient, collection: str) -> None:
    answer = admin.post(f"/v1/collections/{collection}/search", json={"query": "x", "unknown": "y" * 100_000})
    assert answer.json()["errors"][0]["pointer"] == "/unknown"
