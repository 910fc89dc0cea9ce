"""The specification is current, and tells all that a generated client needs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from app.api.openapi import openapi_document
from app.api.router import router

ROOT = Path(__file__).parents[2]
DOCUMENT = openapi_document()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
WITHOUT_KEY = {"GET /livez", "GET /readyz"}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(member) for member in value.values()))
    return set().union(*(references(member) for member in value)) if isinstance(value, list) else set()


def test_the_committed_file_is_current() -> None:
    committed = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
    assert committed == json.loads(json.dumps(DOCUMENT)), "run `make openapi` and commit the file"


def test_it_is_openapi_3_1_and_every_reference_leads_somewhere() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    schemas = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert references(DOCUMENT) <= schemas


def test_every_route_is_in_it() -> None:
    routes = {
        f"{method} {context.path}"
        for context in iter_route_contexts(router.routes)
        if isinstance(context.original_route, APIRoute)
        for method in context.original_route.methods or ()
    }
    assert routes == set(OPERATIONS)


def test_operation_ids_are_unique_and_named_by_their_tag() -> None:
    ids = Counter(operation["operationId"] for operation in OPERATIONS.values())
    assert [name for name, count in ids.items() if count > 1] == []
    for operation in OPERATIONS.values():
        (tag,) = operation["tags"]
        assert operation["operationId"].startswith(f"{tag}.")
    assert {operation["tags"][0] for operation in OPERATIONS.values()} == {tag["name"] for tag in DOCUMENT["tags"]}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_words_typed_answers_and_declared_errors(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]
    good = {status: answer for status, answer in operation["responses"].items() if status < "300"}
    assert good
    for status, answer in good.items():
        described = [{"schema", "itemSchema"} & content.keys() for content in answer.get("content", {}).values()]
        assert status == "204" or (described and all(described))
    for status, answer in operation["responses"].items():
        if status >= "400" and (name, status) != ("GET /readyz", "503"):
            assert answer["content"] == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            }
    if name not in WITHOUT_KEY:
        assert operation["security"] == [{"key": []}]
        assert {"401", "422", "429", "503"} <= operation["responses"].keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_shows_what_it_takes_and_gives(name: str) -> None:
    operation = OPERATIONS[name]
    contents = [operation.get("requestBody", {}).get("content", {})]
    contents += [answer.get("content", {}) for status, answer in operation["responses"].items() if status < "300"]
    for content in contents:
        if "application/json" in content and name != "GET /openapi.json":
            assert resolved(content["application/json"]["schema"]).get("examples"), name


def test_uploads_are_binary() -> None:
    original = OPERATIONS["PUT /v1/collections/{collection}/documents/{document_id}/original"]["requestBody"]
    assert original["content"]["application/octet-stream"]["schema"] == {"type": "string", "format": "binary"}
    upload = OPERATIONS["POST /v1/collections/{collection}/documents/upload"]["requestBody"]
    files = upload["content"]["multipart/form-data"]["schema"]["properties"]["files"]
    assert files["items"] == {"type": "string", "format": "binary"}
