import base64
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from app.api.openapi import openapi_document

EVERY_OPERATION = [
    (method.upper(), path) for path, methods in openapi_document()["paths"].items() for method in methods
]


@pytest.mark.parametrize(("method", "path"), EVERY_OPERATION)
def test_without_a_key_only_the_probes_answer(anonymous: TestClient, method: str, path: str) -> None:
    answer = anonymous.request(method, path.replace("{", "").replace("}", ""))
    if path in ("/livez", "/readyz"):
        assert answer.status_code == 200
        return
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthenticated"
    assert answer.headers["WWW-Authenticate"]


def test_a_path_that_does_not_exist_tells_a_stranger_nothing(anonymous: TestClient) -> None:
    assert anonymous.get("/v1/nowhere").status_code == 401


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/collections"])
def test_who_has_no_key_is_told_where_the_first_one_is(anonymous: TestClient, path: str) -> None:
    assert "data/admin.key" in anonymous.get(path).json()["hint"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic eDp5", "Token x", "Bearer \xff"])
def test_a_key_that_is_none_is_refused(anonymous: TestClient, header: str) -> None:
    answer = anonymous.get("/v1/collections", headers={"Authorization": header.encode("latin-1")})  # type: ignore[dict-item]
    assert answer.status_code == 401


def test_the_word_bearer_is_read_in_any_case(admin: TestClient) -> None:
    key = admin.headers["Authorization"].partition(" ")[2]
    assert admin.get("/v1/collections", headers={"Authorization": f"bearer {key}"}).status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_a_browser_reads_the_documentation_with_the_key_as_password(
    anonymous: TestClient, admin: TestClient, path: str
) -> None:
    assert anonymous.get(path).headers["WWW-Authenticate"].startswith("Basic ")
    key = admin.headers["Authorization"].partition(" ")[2]
    basic = {"Authorization": "Basic " + base64.b64encode(f"me:{key}".encode()).decode()}
    assert anonymous.get(path, headers=basic).status_code == 200
    assert anonymous.get("/v1/collections", headers=basic).status_code == 401


def test_a_key_that_was_revoked_opens_nothing(
    admin: TestClient, collection: str, client_of: Callable[[str], TestClient]
) -> None:
    made = admin.post("/v1/keys", json={"name": "short", "collections": [collection], "role": "search"}).json()
    client = client_of(made["secret"])
    assert client.get(f"/v1/collections/{collection}").status_code == 200
    assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert client.get(f"/v1/collections/{collection}").status_code == 401


def test_a_key_above_its_rate_is_told_when_to_come_back(key_for: Callable[..., TestClient], collection: str) -> None:
    client = key_for("search", collection, requests_per_minute=2)
    assert [client.get(f"/v1/collections/{collection}").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.get("/v1/collections")
    assert refused.json()["code"] == "too_many_requests"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
