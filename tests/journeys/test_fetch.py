"""Documents from URLs, by a server that is ended amid them."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

FINISH_SECONDS = 60.0
COLLECTION = "/v1/collections/web"


class SlowPage:
    """A page that keeps its first visitor waiting until `go`; `asked` says that somebody waits."""

    def __init__(self, site: Any, text: str) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._answer = site.Page(f"<p>{text}</p>".encode(), headers={"Content-Type": "text/html"})

    def __call__(self, _visit: Any) -> Any:
        is_first = not self.asked.is_set()
        self.asked.set()
        if is_first:
            self.go.wait(FINISH_SECONDS)
        return self._answer


def finished(client: httpx.Client, job_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + FINISH_SECONDS
    while time.monotonic() < deadline:
        job: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").json()
        if job["finished_at"] is not None:
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job did not end: {job}")


def test_a_fetch_that_is_cut_off_by_kill_9_is_made_again_and_leaves_nothing_half(
    make_server: Callable[..., Any], site: Any
) -> None:
    server = make_server(fetch="1", fetch_allowed_networks="127.0.0.1/32")
    body = {"url": f"http://127.0.0.1:{site.port}/page", "id": "page"}
    with server.client() as client:
        assert client.put(COLLECTION, json={}).status_code == 201
    for version, text in enumerate(("harbour lantern", "violet engine"), 1):
        page = site.pages["/page"] = SlowPage(site, text)
        with server.client() as client:
            job = client.post(f"{COLLECTION}/documents/fetch", json=body).json()
            assert page.asked.wait(FINISH_SECONDS)
        server.kill()
        page.go.set()
        server.start()
        with server.client() as client:
            ended = finished(client, job["id"])
            assert (ended["state"], ended["attempt"]) == ("succeeded", 2), ended
            document = client.get(f"{COLLECTION}/documents/page").json()
            assert (document["state"], document["version"], document["error"]) == ("ready", version, None)
            assert client.get(f"{COLLECTION}/documents/page/text").text == text
            hits = client.post(f"{COLLECTION}/search", json={"query": text}).json()["data"]
            assert [hit["text"] for hit in hits] == [text]
            report = client.post(f"{COLLECTION}/verify", headers={"Prefer": "wait=60"}).json()
            assert report == report | {"clean": True, "differences": []}
    originals = list((server.data / "collections").glob("*/originals/**/*"))
    assert len([path for path in originals if path.is_file()]) == 2
    assert not [path for path in server.data.glob("spool/*/fetch-*") if path.is_file()]
