from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient


def test_a_secret_is_shown_once_and_opens_what_it_should(
    admin: TestClient, collection: str, client_of: Callable[[str], TestClient]
) -> None:
    body = {"name": "k", "collections": [collection], "role": "ask", "requests_per_minute": 60}
    made = admin.post("/v1/keys", json=body)
    key = made.json()
    assert made.status_code == 201
    assert (key["role"], key["collections"], key["requests_per_minute"]) == ("ask", [collection], 60)
    assert key["secret"].startswith(key["prefix"])
    assert client_of(key["secret"]).get(f"/v1/collections/{collection}").status_code == 200
    listed = {found["id"]: found for found in admin.get("/v1/keys?limit=200").json()["data"]}
    assert "secret" not in listed[key["id"]]
    assert listed[key["id"]]["last_used_at"] is not None


def test_rotation_keeps_the_old_secret_for_the_overlap_only(
    admin: TestClient, collection: str, client_of: Callable[[str], TestClient]
) -> None:
    path = f"/v1/collections/{collection}"
    old = admin.post("/v1/keys", json={"name": "k", "collections": [collection], "role": "search"}).json()
    new = admin.post(f"/v1/keys/{old['id']}/rotate", json={"overlap_seconds": 3600}).json()
    assert [client_of(key["secret"]).get(path).status_code for key in (old, new)] == [200, 200]
    newest = admin.post(f"/v1/keys/{new['id']}/rotate", json={}).json()
    assert [client_of(key["secret"]).get(path).status_code for key in (new, newest)] == [401, 200]


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"role": "admin"}, 422, "/role"),
        ({"role": "reader"}, 422, "/role"),
        ({"collections": []}, 422, "/collections"),
        ({"filter": {"field": "a", "op": "eq"}}, 422, "/filter/value"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, 422, "/expires_at"),
        ({"requests_per_minute": 0}, 422, "/requests_per_minute"),
        ({"name": ""}, 422, "/name"),
        ({"scopes": []}, 422, "/scopes"),
        ({"collections": ["none"]}, 404, None),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    admin: TestClient, collection: str, change: dict[str, Any], status: int, pointer: str | None
) -> None:
    body = {"name": "k", "collections": [collection], "role": "search"} | change
    refused = admin.post("/v1/keys", json=body)
    assert refused.status_code == status, refused.text
    if pointer:
        assert refused.json()["errors"][0]["pointer"] == pointer


def test_an_owner_manages_the_keys_of_its_own_collections_only(
    admin: TestClient, collection: str, key_for: Callable[..., TestClient]
) -> None:
    admin.put("/v1/collections/foreign", json={})
    foreign = admin.post("/v1/keys", json={"name": "f", "collections": ["foreign"], "role": "search"}).json()
    both = admin.post("/v1/keys", json={"name": "b", "collections": ["foreign", collection], "role": "search"}).json()
    owner = key_for("owner", collection)
    mine = owner.post("/v1/keys", json={"name": "m", "collections": [collection], "role": "ingest"})
    assert mine.status_code == 201
    refused = owner.post("/v1/keys", json={"name": "m", "collections": ["foreign"], "role": "search"})
    assert refused.status_code == 404
    assert mine.json()["id"] in {key["id"] for key in owner.get("/v1/keys").json()["data"]}
    assert {foreign["id"], both["id"]}.isdisjoint(key["id"] for key in owner.get("/v1/keys").json()["data"])
    for hidden in (foreign, both):
        assert owner.delete(f"/v1/keys/{hidden['id']}").status_code == 404
        assert owner.post(f"/v1/keys/{hidden['id']}/rotate", json={}).status_code == 404
    assert owner.delete(f"/v1/keys/{mine.json()['id']}").status_code == 204
    assert key_for("ingest", collection).get("/v1/keys").status_code == 403


def test_a_key_with_a_filter_cannot_make_one_without(collection: str, key_for: Callable[..., TestClient]) -> None:
    narrow = key_for("owner", collection, filter={"field": "team", "op": "eq", "value": "hr"})
    refused = narrow.post("/v1/keys", json={"name": "wide", "collections": [collection], "role": "search"})
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    assert narrow.get("/v1/keys").status_code == 403


def test_a_secret_that_is_replayed_is_not_kept_in_clear(
    started: Callable[..., TestClient],
) -> None:
    client = started()
    client.put("/v1/collections/c", json={})
    body = {"name": "k", "collections": ["c"], "role": "search"}
    first = client.post("/v1/keys", json=body, headers={"Idempotency-Key": "one"})
    again = client.post("/v1/keys", json=body, headers={"Idempotency-Key": "one"})
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    secret = first.json()["secret"].encode()
    data = client.app.state.services.settings.data  # type: ignore[attr-defined]
    assert not any(secret in file.read_bytes() for file in data.rglob("*") if file.is_file())
    assert len(client.get("/v1/keys").json()["data"]) == 1
