import errno
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

MEMBERS = {"type", "title", "status", "detail", "code", "instance", "request_id"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nowhere", 404, "not_found"),
        ("GET", "/v1/collections/", 404, "not_found"),
        ("GET", "/v1/collections/none", 404, "not_found"),
        ("POST", "/v1/collections", 405, "method_not_allowed"),
        ("GET", "/v1/collections?limt=3", 422, "unknown_field"),
        ("GET", "/v1/collections?limit=0", 422, "invalid_request"),
        ("GET", "/v1/collections?cursor=abc", 422, "invalid_cursor"),
        ("GET", "/v1/jobs?state=don", 422, "unknown_field"),
    ],
)
def test_every_error_is_a_problem(admin: TestClient, method: str, path: str, status: int, code: str) -> None:
    answer = admin.request(method, path)
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem.keys() >= MEMBERS
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert problem["instance"] == path.partition("?")[0]


@pytest.mark.parametrize(
    "path",
    ["/v1/collections", "/v1/jobs", "/v1/keys"]
    + [f"/v1/collections/{{collection}}/documents{below}" for below in ("", "/d/chunks", "/d/versions")],
)
def test_every_list_answers_a_foreign_cursor_alike(
    admin: TestClient, collection: str, put: Callable[..., Any], path: str
) -> None:
    put(collection, "d", "some text")
    answer = admin.get(path.format(collection=collection), params={"cursor": "abc"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor")
    assert answer.json()["errors"][0]["pointer"] == "query:cursor"


def test_a_method_that_is_not_allowed_names_those_that_are(admin: TestClient) -> None:
    assert admin.post("/v1/collections").headers["Allow"] == "GET"
    assert admin.post("/v1/collections/c").headers["Allow"] == "DELETE, GET, PATCH, PUT"
    assert admin.put("/v1/collections/c/documents").headers["Allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("body", "pointer", "code", "words"),
    [
        ({"query": "x", "filters": {}}, "/filters", "unknown_field", "did you mean `filter`?"),
        ({"query": "x", "mode": "hybird"}, "/mode", "unknown_field", "did you mean `hybrid`?"),
        ({"query": "x", "fusion": {"methd": "rrf"}}, "/fusion/methd", "unknown_field", "did you mean `method`?"),
        ({"query": "x", "fusion": {"weights": {"dens": 1}}}, "/fusion/weights/dens", "unknown_field", "`dense`"),
        ({"query": "x", "fusion": {"weights": "atuo"}}, "/fusion/weights", "unknown_field", "`auto`"),
        ({"query": "x", "fusion": {"method": "weighted", "k": 3}}, "/fusion/k", "unknown_field", "weighted"),
        ({"query": "x", "fusion": {"method": "relative", "k": 3}}, "/fusion/k", "unknown_field", "relative"),
        ({"query": "x", "fusion": {"alpha": 0.5, "k": 3}}, "/fusion/k", "unknown_field", "relative"),
        ({"query": "x", "fusion": {"method": "weighted", "alpha": 2}}, "/fusion/alpha", "less_than_equal", "1"),
        ({"query": "x", "filter": {"field": "a", "op": "eqals", "value": 1}}, "/filter/op", "unknown_field", "eq"),
        ({"query": "x", "top_k": "5"}, "/top_k", "int_type", "integer"),
        ({"query": "x", "top_k": True}, "/top_k", "int_type", "integer"),
        ({"query": "x", "top_k": 201}, "/top_k", "out_of_range", "200"),
        ({"query": "x", "top_k": 10, "candidates": 5}, "/candidates", "too_small", "top_k 10"),
        ({"query": ""}, "/query", "empty", "query holds no text"),
        ({"query": "x", "queries": [" "]}, "/queries/0", "empty", "queries/0 holds no text"),
        ({"query": "x", "fields": []}, "/fields", "too_short", "must have at least 1 item, not 0"),
        ({"query": "x", "facets": [""]}, "/facets/0", "string_too_short", "must have at least 1 character"),
        ({"query": "x", "facets": ["team", "$source_type"]}, "/facets/1", "no_metadata", "no metadata field"),
        ({"query": "x", "rerank": {"method": "listwise"}}, "/rerank/method", "unknown_field", "the model `lexical`"),
        ({"query": "x", "rerank": {"candidates": 1001}}, "/rerank/candidates", "too_large", "FOOTNOTE_MAX_CANDIDATES"),
        ({"query": " \n "}, "/query", "empty", "at least one word"),
        ({"top_k": 3}, "/query", "missing", "required"),
        ({"query": "x", "colour": {}}, "/colour", "unknown_field", "not known"),
        ([], "", "object_type", "object"),
    ],
)
def test_a_wrong_value_is_pointed_at(
    admin: TestClient, collection: str, body: Any, pointer: str, code: str, words: str
) -> None:
    answer = admin.post(f"/v1/collections/{collection}/search", json=body)
    assert answer.status_code == 422, answer.text
    first = answer.json()["errors"][0]
    assert (first["pointer"], first["code"]) == (pointer, code)
    assert words in first["detail"]


def test_all_unknown_names_are_told_at_once(admin: TestClient, collection: str) -> None:
    answer = admin.post(f"/v1/collections/{collection}/search", json={"query": "x", "a/b": 1, "topk": 2})
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/a~1b", "/topk"]


def test_a_bug_is_told_without_its_inside(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = started()
    services = client.app.state.services  # type: ignore[attr-defined]
    monkeypatch.setattr(type(services.collections), "list", lambda *_, **__: 1 / 0)
    answer = client.get("/v1/collections")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "division" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_a_full_disk_is_told_as_such(started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    client = started()
    client.put("/v1/collections/c", json={})

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/place")

    monkeypatch.setattr("app.ingestion.sources.Originals.write", full)
    answer = client.put("/v1/collections/c/documents/d", json={"text": "some words"})
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
    assert "secret" not in answer.text


def test_names_that_are_not_unicode_come_back_as_valid_json(admin: TestClient, collection: str) -> None:
    answer = admin.post(
        f"/v1/collections/{collection}/search",
        content=rb'{"query": "x", "\ud800": 1}',
        headers={"Content-Type": "application/json"},
    )
    assert answer.json()["errors"][0]["pointer"] == "/\ufffd"
