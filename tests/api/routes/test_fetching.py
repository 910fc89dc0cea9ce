"""Documents from URLs at the door: what is refused, what is answered, and who sees which source."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

PATH = "/v1/collections/web"
WAIT = {"Prefer": "wait=30"}


@pytest.fixture
def web(started: Callable[..., TestClient]) -> TestClient:
    """A client of a service that fetches from 127.0.0.1 alone, with a collection."""
    client = started(fetch=True, fetch_allowed_networks="127.0.0.1/32")
    assert client.put(PATH, json={}).status_code == 201
    return client


def page(site: Any, path: str, text: str, **headers: str) -> str:
    site.pages[path] = site.Page(text.encode(), headers={"Content-Type": "text/plain", **headers})
    return f"http://127.0.0.1:{site.port}{path}"


def fetch(client: TestClient, url: str, **more: Any) -> Any:
    return client.post(f"{PATH}/documents/fetch", json={"url": url, **more}, headers=WAIT)


def key_for(client: TestClient, role: str, **more: Any) -> TestClient:
    body = {"name": role, "role": role, "collections": ["web"], **more}
    secret = client.post("/v1/keys", json=body).json()["secret"]
    return TestClient(client.app, headers={"Authorization": f"Bearer {secret}"})


def test_a_url_is_answered_as_a_put_is(web: TestClient, site: Any) -> None:
    url = page(site, "/leave.txt", "320 working days of parental leave")
    made = fetch(web, url, id="leave", title="Leave", metadata={"team": "hr"})
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["id"], body["outcome"], body["state"]) == ("leave", "created", "ready")
    assert body["metadata"] == {"team": "hr", "url": url}
    hits = web.post(f"{PATH}/search", json={"query": "parental leave"}).json()["data"]
    assert hits[0]["metadata"]["url"] == url
    again = fetch(web, url, id="leave", title="Leave", metadata={"team": "hr"})
    assert (again.status_code, again.json()["outcome"], again.json()["chunks"]["embedded"]) == (200, "unchanged", 0)


def test_without_waiting_the_answer_is_the_job(web: TestClient, site: Any) -> None:
    url = page(site, "/a", "alpha")
    accepted = web.post(f"{PATH}/documents/fetch", json={"url": url})
    assert accepted.status_code == 202
    job = accepted.json()
    assert (job["kind"], accepted.headers["Location"]) == ("fetch", f"/v1/jobs/{job['id']}")
    assert job["document_id"].startswith("127.0.0.1_")


@pytest.mark.parametrize(
    "url",
    [
        "http://0x7f.2/",
        "http://127.0.0.2/",
        "http://[::ffff:127.0.0.2]/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "http://user:word@site.example/",
        "no url",
    ],
)
def test_a_url_that_leads_inside_is_422_before_anything_is_done(web: TestClient, url: str) -> None:
    refused = web.post(f"{PATH}/documents/fetch", json={"url": url})
    assert (refused.status_code, refused.json()["code"]) == (422, "url_blocked")
    assert refused.json()["errors"][0]["pointer"] == "/url"
    assert web.get(f"{PATH}/documents").json()["data"] == []


def test_a_name_or_a_redirect_that_leads_inside_is_422_of_the_job(web: TestClient, site: Any) -> None:
    site.pages["/"] = site.Page(status=302, headers={"Location": "http://169.254.169.254/"})
    for url in ("http://localhost.localdomain.test/", f"http://127.0.0.1:{site.port}/"):
        refused = fetch(web, url)
        assert refused.json()["code"] in ("url_blocked", "fetch_failed")
    assert (refused.status_code, refused.json()["code"]) == (422, "url_blocked")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/url"),
        ({"url": "http://site.example/", "id": "a/b"}, "/id"),
        ({"url": "http://site.example/", "metadata": {"$x": 1}}, "/metadata/$x"),
        ({"url": "http://site.example/", "refresh_seconds": 59}, "/refresh_seconds"),
        ({"url": "http://site.example/", "refresh": 60}, "/refresh"),
        ({"url": "http://site.example/", "chunking": {"size": 5, "overlap": 5}}, "/chunking/overlap"),
    ],
)
def test_what_is_wrong_is_pointed_at(web: TestClient, body: dict[str, Any], pointer: str) -> None:
    refused = web.post(f"{PATH}/documents/fetch", json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_a_service_that_does_not_fetch_says_which_setting_lets_it(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}"
    for target, body in (
        ("documents/fetch", {"url": "http://site.example/"}),
        ("sources", {"sources": [{"url": "http://site.example/"}]}),
    ):
        refused = admin.post(f"{path}/{target}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "fetch_disabled")
        assert "FOOTNOTE_FETCH=1" in refused.json()["hint"]


# --- sources ---


def test_a_list_of_urls_becomes_sources_and_one_that_is_wrong_fails_alone(web: TestClient, site: Any) -> None:
    urls = [page(site, f"/{name}", f"text {name}") for name in "ab"]
    body = {"sources": [{"url": url, "refresh_seconds": 3600} for url in (urls[0], "http://127.0.0.2/", urls[1])]}
    made = web.post(f"{PATH}/sources", json=body)
    assert made.status_code == 202, made.text
    first, wrong, second = made.json()["results"]
    assert (wrong["status"], wrong["error"]["code"], wrong["source"]) == (422, "url_blocked", None)
    assert wrong["error"]["errors"][0]["pointer"] == "/sources/1/url"
    for result, url in ((first, urls[0]), (second, urls[1])):
        assert (result["status"], result["source"]["url"], result["error"]) == (202, url, None)
    refreshed = web.post(f"{PATH}/sources/{first['source']['id']}/refresh", headers=WAIT)
    assert refreshed.json()["state"] == "succeeded"
    source = web.get(f"{PATH}/sources/{first['source']['id']}").json()
    assert (source["status"], source["refresh_seconds"], source["failures"]) == ("ok", 3600, 0)
    assert source["next_at"] > source["fetched_at"]
    listed = web.get(f"{PATH}/sources", params={"limit": 1}).json()
    assert listed["has_more"]
    rest = web.get(f"{PATH}/sources", params={"cursor": listed["next_cursor"]}).json()
    assert {found["url"] for found in [*listed["data"], *rest["data"]]} == set(urls)


def test_a_url_that_is_gone_is_told_of_its_source_and_its_document(web: TestClient, site: Any) -> None:
    assert fetch(web, page(site, "/a", "alpha"), id="a").status_code == 201
    (source,) = web.get(f"{PATH}/sources").json()["data"]
    site.pages["/a"] = site.Page(status=410)
    job = web.post(f"{PATH}/sources/{source['id']}/refresh", headers=WAIT).json()
    assert (job["state"], job["error"]["code"]) == ("failed", "url_not_found")
    told = web.get(f"{PATH}/sources/{source['id']}").json()
    assert (told["status"], told["error"]["http_status"], told["failures"]) == ("gone", 410, 1)
    document = web.get(f"{PATH}/documents/a").json()
    assert (document["state"], document["error"]["code"]) == ("ready", "url_not_found")
    assert web.get(f"{PATH}/documents/a/text").text == "alpha"


@pytest.mark.parametrize("delete_document", [False, True])
def test_a_source_is_deleted_without_or_with_its_document(web: TestClient, site: Any, delete_document: bool) -> None:
    fetch(web, page(site, "/a", "alpha"), id="a")
    (source,) = web.get(f"{PATH}/sources").json()["data"]
    parameters = {"delete_document": "true"} if delete_document else {}
    assert web.delete(f"{PATH}/sources/{source['id']}", params=parameters).status_code == 204
    assert web.get(f"{PATH}/sources/{source['id']}").status_code == 404
    assert web.delete(f"{PATH}/sources/{source['id']}").status_code == 404
    assert web.get(f"{PATH}/documents/a").status_code == (404 if delete_document else 200)


def test_another_collection_s_source_is_not_there(web: TestClient, site: Any) -> None:
    fetch(web, page(site, "/a", "alpha"), id="a")
    (source,) = web.get(f"{PATH}/sources").json()["data"]
    web.put("/v1/collections/other", json={})
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/refresh")):
        answer = web.request(method, f"/v1/collections/other/sources/{source['id']}{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert web.get("/v1/collections/other/sources").json()["data"] == []


def test_a_key_with_a_filter_sees_the_sources_of_its_documents_only(web: TestClient, site: Any) -> None:
    fetch(web, page(site, "/a", "alpha"), id="a", metadata={"team": "hr"})
    fetch(web, page(site, "/b", "beta"), id="b", metadata={"team": "it"})
    key = key_for(web, "ingest", filter={"field": "team", "op": "eq", "value": "hr"})
    hidden = next(found for found in web.get(f"{PATH}/sources").json()["data"] if found["document_id"] == "b")
    assert [found["document_id"] for found in key.get(f"{PATH}/sources").json()["data"]] == ["a"]
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/refresh")):
        assert key.request(method, f"{PATH}/sources/{hidden['id']}{path}").status_code == 404
    taken = fetch(key, f"http://127.0.0.1:{site.port}/a", id="b")
    assert (taken.status_code, taken.json()["code"]) == (404, "not_found")


def test_a_request_that_is_sent_twice_is_done_once(web: TestClient, site: Any) -> None:
    body = {"sources": [{"url": page(site, "/a", "alpha")}]}
    first, second = (web.post(f"{PATH}/sources", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.json() == second.json()
