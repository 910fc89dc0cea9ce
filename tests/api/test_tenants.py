"""Two keys of two collections; every operation of the specification is tried across."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.openapi import openapi_document

ROLES = ["search", "ask", "ingest", "owner"]
WITHOUT_TENANT = {"service.livez", "service.readyz", "service.docs", "service.specification"}
ADMIN_ONLY = {"service.metrics"}
LISTS = {"collections.list", "jobs.list", "keys.list"}
DOCUMENT = openapi_document()
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
NOT_FOR_SEARCH = sorted(name for name, (_, _, operation) in OPERATIONS.items() if "403" in operation["responses"])
ACROSS = sorted(OPERATIONS.keys() - WITHOUT_TENANT - ADMIN_ONLY - LISTS)
BELOW_A_COLLECTION = sorted(
    name for name, (_, path, _) in OPERATIONS.items() if "{webhook_id}" in path or "{source_id}" in path
)


@dataclass
class Tenant:
    """A collection with one document, its job and a key of each role."""

    name: str
    job_id: str
    webhook_id: str
    source_id: str
    key_ids: dict[str, str]
    clients: dict[str, TestClient]


@pytest.fixture(scope="module")
def tenants(admin: TestClient, client_of: Callable[[str], TestClient]) -> Iterator[tuple[Tenant, Tenant]]:
    def make(name: str) -> Tenant:
        admin.put(f"/v1/collections/{name}", json={})
        body = {"text": f"the secret of {name} is {name}-word", "metadata": {name: True}}
        ready = admin.put(f"/v1/collections/{name}/documents/same", json=body, headers={"Prefer": "wait=30"})
        assert ready.status_code == 201, ready.text
        job_id = ready.headers["Location"].rpartition("/")[2]
        webhook = admin.post(f"/v1/collections/{name}/webhooks", json={"url": "https://hooks.example/"})
        services = admin.app.state.services  # type: ignore[attr-defined]
        source = services.ingestion.sources.put(
            services.collections.get(name).id, "same", "https://site.example/", metadata={}, refresh_seconds=None
        )
        keys = {
            role: admin.post("/v1/keys", json={"name": role, "collections": [name], "role": role}).json()
            for role in ROLES
        }
        return Tenant(
            name,
            job_id,
            webhook.json()["id"],
            source.id,
            {role: key["id"] for role, key in keys.items()},
            {role: client_of(key["secret"]) for role, key in keys.items()},
        )

    yield make("tenant-a"), make("tenant-b")
    for name in ("tenant-a", "tenant-b"):
        admin.delete(f"/v1/collections/{name}")


def example_of(schema: dict[str, Any]) -> Any:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema["examples"][0]


def request_for(operation_id: str, tenant: Tenant) -> tuple[str, str, dict[str, Any]]:
    """Return method, path and body of a valid request for what belongs to a tenant."""
    method, path, operation = OPERATIONS[operation_id]
    path = path.format(
        collection=tenant.name,
        document_id="same",
        job_id=tenant.job_id,
        key_id=tenant.key_ids["search"],
        webhook_id=tenant.webhook_id,
        source_id=tenant.source_id,
    )
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        body = example_of(content["application/json"]["schema"])
        if operation_id in ("keys.create", "search.several"):
            body = body | {"collections": [tenant.name]}
        if operation_id == "chunks.preview":
            body = {"collection": tenant.name, "document_id": "same"}
        return method, path, {"json": body}
    if "multipart/form-data" in content:
        return method, path, {"files": [("files", ("a.txt", b"x"))]}
    return method, path, {"content": b"x"} if content else {}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation_id", ACROSS)
def test_what_belongs_to_another_tenant_is_not_there(
    tenants: tuple[Tenant, Tenant], operation_id: str, role: str
) -> None:
    mine, other = tenants
    method, path, body = request_for(operation_id, other)
    refused = mine.clients[role].request(method, path, **body)
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), refused.text


@pytest.mark.parametrize("operation_id", BELOW_A_COLLECTION)
def test_what_belongs_to_another_tenant_is_not_below_a_collection_of_one_s_own(
    tenants: tuple[Tenant, Tenant], operation_id: str
) -> None:
    mine, other = tenants
    foreign = replace(other, name=mine.name)
    method, path, body = request_for(operation_id, foreign)
    refused = mine.clients["owner"].request(method, path, **body)
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), refused.text
    if method == "GET":
        method, path, body = request_for(operation_id, mine)
        assert mine.clients["owner"].request(method, path, **body).status_code == 200


@pytest.mark.parametrize("role", ROLES)
def test_lists_hold_nothing_of_another_tenant(tenants: tuple[Tenant, Tenant], role: str) -> None:
    mine, other = tenants
    for operation_id in sorted(LISTS):
        answer = mine.clients[role].get(OPERATIONS[operation_id][1], params={"limit": 200})
        assert answer.status_code in (200, 403)
        assert other.name not in answer.text
    assert mine.clients[role].get("/v1/jobs", params={"collection": other.name}).status_code == 404


def test_another_tenant_s_collection_looks_like_one_that_never_was(tenants: tuple[Tenant, Tenant]) -> None:
    mine, other = tenants

    def told(name: str) -> tuple[int, Any]:
        answer = mine.clients["owner"].post(f"/v1/collections/{name}/search", json={"query": "x"})
        body = answer.json()
        return answer.status_code, {
            member: str(value).replace(name, "NAME") for member, value in body.items() if member != "request_id"
        }

    assert told(other.name) == told("tenant-that-never-was")


def test_the_same_document_id_never_mixes(tenants: tuple[Tenant, Tenant]) -> None:
    for _ in range(3):
        for tenant in tenants:
            client, path = tenant.clients["search"], f"/v1/collections/{tenant.name}"
            assert (
                client.get(f"{path}/documents/same/text").text == f"the secret of {tenant.name} is {tenant.name}-word"
            )
            for mode in ("dense", "keyword", "hybrid"):
                hits = client.post(f"{path}/search", json={"query": "the secret word", "mode": mode}).json()["data"]
                assert [(hit["collection"], hit["metadata"]) for hit in hits] == [(tenant.name, {tenant.name: True})]


def test_every_operation_is_tried() -> None:
    named = {operation_id for operation_id in ACROSS if "{" in OPERATIONS[operation_id][1]}
    assert named | {"keys.create", "chunks.preview", "search.several"} == set(ACROSS)


@pytest.mark.parametrize("operation_id", NOT_FOR_SEARCH)
def test_a_role_that_is_too_low_is_told_which_is_needed(tenants: tuple[Tenant, Tenant], operation_id: str) -> None:
    mine, _ = tenants
    method, path, body = request_for(operation_id, mine)
    refused = mine.clients["search"].request(method, path, **body)
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope"), refused.text
    assert refused.json()["role"] == "search"
    assert refused.json()["needed_role"] in ("ask", "ingest", "owner", "admin")
