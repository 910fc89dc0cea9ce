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


def test_lone_surrogates_stay_in_the_content_of_documents_and_are_refused_elsewhere_with_their_places() -> None:
    content = rb'{"text": "a\ud800", "records": [{"b": "\udfff"}], "title": "\ud83d\ude00"}'
    parsed = parse_json(content, may_hold_documents=True)
    assert parsed == {"text": "a\ud800", "records": [{"b": "\udfff"}], "title": "😀"}
    body = rb'{"text": "a\ud800", "title": "b\udfff", "metadata": {"text": ["c", "\ud800"], "d/\ud800": 1}}'
    with pytest.raises(InvalidRequest) as refused:
        parse_json(body, may_hold_documents=True)
    places = ["/title", "/metadata/text/1", "/metadata/d~1\ufffd"]
    assert [error.pointer for error in refused.value.errors] == places
    with pytest.raises(InvalidRequest) as refused:
        parse_json(body, "/info")
    assert [error.pointer for error in refused.value.errors] == ["/info/text", *(f"/info{place}" for place in places)]


def test_a_string_by_itself_is_looked_at_too() -> None:
    with pytest.raises(InvalidRequest, match="the body holds a lone surrogate"):
        parse_json(rb'"\ud800"')


def test_not_every_one_of_very_many_places_is_told() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_json(b"[" + b",".join([rb'"\ud800"'] * 5000) + b"]")
    assert len(refused.value.errors) == 100


LONE: list[tuple[str, str, str, str]] = [
    ("PUT", "", '{"title": "@"}', "/title"),
    ("PUT", "", '{"analysis": {"synonyms": [["car", "@"]]}}', "/analysis/synonyms/0/1"),
    ("PUT", "", '{"analysis": {"stop_words": ["@"]}}', "/analysis/stop_words/0"),
    ("PUT", "", '{"instructions": "say @"}', "/instructions"),
    ("PATCH", "", '{"description": "@"}', "/description"),
    ("PUT", "/documents/d", '{"text": "words", "title": "@"}', "/title"),
    ("PUT", "/documents/d", '{"text": "words", "metadata": {"a": ["@"]}}', "/metadata/a/0"),
    ("PUT", "/documents/d", '{"chunks": [{"text": "@"}]}', "/chunks/0/text"),
    ("PATCH", "/documents/d", '{"metadata": {"@": 1}}', "/metadata/\ufffd"),
    ("POST", "/documents/delete", '{"filter": {"field": "a", "op": "eq", "value": "@"}}', "/filter/value"),
    ("POST", "/search", '{"query": "@"}', "/query"),
    ("POST", "/search", '{"query": "x", "queries": ["y", "@"]}', "/queries/1"),
    ("POST", "/search", '{"query": "x", "filter": {"field": "@", "op": "exists", "value": true}}', "/filter/field"),
    ("POST", "/ask", '{"question": "@"}', "/question"),
    ("POST", "/ask", '{"question": "x", "messages": [{"role": "user", "content": "@"}]}', "/messages/0/content"),
    ("POST", "/webhooks", '{"url": "https://example.org/@"}', "/url"),
    ("POST", "/../../search", '{"query": "x", "collections": ["@"]}', "/collections/0"),
    ("POST", "/../../keys", '{"name": "@", "role": "search", "collections": []}', "/name"),
]


@pytest.mark.parametrize(("method", "path", "body", "pointer"), LONE)
def test_a_string_that_is_no_unicode_is_refused_by_every_route_and_named(
    admin: TestClient, collection: str, method: str, path: str, body: str, pointer: str
) -> None:
    answer = admin.request(
        method, f"/v1/collections/{collection}{path}", content=body.replace("@", r"\ud800").encode(), headers=JSON
    )
    assert answer.status_code == 422, answer.text
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, "lone_surrogate")]
    assert pointer in answer.json()["detail"]


@pytest.mark.parametrize("name", ["filter", "metadata"])
def test_json_in_a_query_parameter_is_unicode_too(admin: TestClient, collection: str, name: str) -> None:
    path, method = {"filter": ("", "GET"), "metadata": ("/d/original", "PUT")}[name]
    params = {name: r'{"field": "a", "op": "eq", "value": "\ud800"}'}
    answer = admin.request(method, f"/v1/collections/{collection}/documents{path}", params=params)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"query:{name}/value"


def test_a_document_of_a_batch_that_is_no_unicode_fails_alone(admin: TestClient, collection: str) -> None:
    body = rb"""{"documents": [
        {"id": "a", "text": "fine"}, {"id": "b", "text": "x", "title": "\ud800"}, {"id": "\ud800", "text": "x"}
    ]}"""
    answer = admin.post(f"/v1/collections/{collection}/documents", content=body, headers=JSON | {"Prefer": "wait=30"})
    results = answer.json()["results"]
    assert [item["status"] for item in results] == [201, 422, 422]
    pointers = [item["error"]["errors"][0]["pointer"] for item in results[1:]]
    assert pointers == ["/documents/1/title", "/documents/2/id"]
    assert [item["id"] for item in results] == ["a", "b", None]


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
