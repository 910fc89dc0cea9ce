import base64
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from app.api import authentication
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


class TestWhereTheApplicationIsMounted:
    """A proxy or another application may serve it under a prefix, which no route knows."""

    @pytest.fixture
    def mounted(self, application: FastAPI, admin: TestClient) -> Callable[..., TestClient]:
        def under(root_path: str, key: str | None = None) -> TestClient:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            return TestClient(application, root_path=root_path, headers=headers)

        return under

    def test_probes_browsers_and_keys_are_admitted_as_without_a_prefix(
        self, mounted: Callable[..., TestClient], admin: TestClient, collection: str
    ) -> None:
        key = admin.headers["Authorization"].partition(" ")[2]
        stranger, caller = mounted("/footnote"), mounted("/footnote", key)
        assert stranger.get("/footnote/livez").status_code == 200
        assert stranger.get("/footnote/v1/collections").status_code == 401
        assert stranger.get("/footnote/docs").headers["WWW-Authenticate"].startswith("Basic ")
        assert caller.get(f"/footnote/v1/collections/{collection}").json()["name"] == collection
        wrong = caller.delete(f"/footnote/v1/collections/{collection}/search")
        assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")

    def test_a_prefix_that_names_a_collection_opens_no_other(
        self, mounted: Callable[..., TestClient], admin: TestClient, collection: str
    ) -> None:
        admin.put("/v1/collections/theirs-under-a-prefix", json={})
        made = admin.post("/v1/keys", json={"name": "k", "collections": [collection], "role": "owner"}).json()
        prefix = f"/v1/collections/{collection}"
        client = mounted(prefix, made["secret"])
        assert client.get(f"{prefix}/v1/collections/theirs-under-a-prefix").status_code == 404
        assert client.get(f"{prefix}/v1/collections/{collection}").json()["name"] == collection
        assert client.get(f"{prefix}/v1/collections/{collection}/stats").status_code == 200
        both = mounted(prefix, admin.headers["Authorization"].partition(" ")[2])
        answered = both.get(f"{prefix}/v1/collections/theirs-under-a-prefix").json()
        assert answered["name"] == "theirs-under-a-prefix"

    def test_an_application_inside_another_finds_its_collections(
        self, application: FastAPI, admin: TestClient, collection: str
    ) -> None:
        outer = TestClient(Starlette(routes=[Mount("/inner", application)]), headers=admin.headers)
        assert outer.get(f"/inner/v1/collections/{collection}").json()["name"] == collection
        assert outer.get("/inner/livez").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "{ours}%2F..%2F{theirs}",
        "{ours}/..%2F{theirs}/stats",
        "..%2Fcollections%2F{theirs}",
        "%2F{theirs}",
        "/{theirs}",
        "{theirs}%2F",
        "{theirs}%2Fstats",
        "{theirs}%00",
        "{theirs}%3Fa=b",
        "{ours}%0A{theirs}",
        "%74heirs-encoded",
        "{ours}%252F{theirs}/stats",
    ],
)
def test_no_way_of_writing_a_path_leads_to_another_tenant(
    admin: TestClient, key_for: Callable[..., TestClient], collection: str, path: str
) -> None:
    admin.put("/v1/collections/theirs-encoded", json={})
    client = key_for("owner", collection)
    written = "/v1/collections/" + path.format(ours=collection, theirs="theirs-encoded")
    assert client.get(written).status_code == 404


def test_a_name_may_be_written_in_percents(key_for: Callable[..., TestClient], collection: str) -> None:
    written = "".join(f"%{ord(letter):02x}" for letter in collection)
    assert key_for("search", collection).get(f"/v1/collections/{written}").json()["name"] == collection


def test_the_collection_of_the_route_counts_whatever_the_path_was_taken_for(
    admin: TestClient, key_for: Callable[..., TestClient], collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.put("/v1/collections/theirs-mistaken", json={})
    client = key_for("owner", collection)
    for taken in (collection, "theirs-mistaken", "absent", None):
        monkeypatch.setattr(authentication, "_collection_name", lambda _, taken=taken: taken)
        assert client.get("/v1/collections/theirs-mistaken").status_code == 404
        assert client.get("/v1/collections/absent").status_code == 404
        assert client.get(f"/v1/collections/{collection}").json()["name"] == collection
