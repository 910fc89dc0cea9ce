"""kill -9 at any moment loses nothing that was committed and leaves nothing half-visible."""

import random
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

DOCUMENTS = 200
KILLS = 20
FINISH_SECONDS = 120.0
WORDS = ["harbour", "violet", "engine", "lantern", "granite", "meadow", "copper", "orchid", "thunder", "velvet"]


def document(number: int) -> dict[str, Any]:
    chosen = random.Random(number)
    sentences = [" ".join(chosen.choices(WORDS, k=12)) + f" marker{number}." for _ in range(40)]
    return {"id": f"doc-{number}", "text": "\n\n".join(sentences), "metadata": {"number": number}}


def put_all(client: httpx.Client) -> None:
    for begin in range(0, DOCUMENTS, 50):
        batch = [document(number) for number in range(begin, begin + 50)]
        answer = client.post("/v1/collections/crash/documents", json={"documents": batch})
        assert answer.status_code in (200, 202), answer.text


def documents(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = client.get(
            "/v1/collections/crash/documents", params={"limit": 200} | ({"cursor": cursor} if cursor else {})
        ).json()
        found += page["data"]
        cursor = page["next_cursor"]
        if not page["has_more"]:
            return found


def wait_until_ready(client: httpx.Client) -> list[dict[str, Any]]:
    deadline = time.monotonic() + FINISH_SECONDS
    while time.monotonic() < deadline:
        found = documents(client)
        if len(found) == DOCUMENTS and all(each["state"] == "ready" for each in found):
            return found
        time.sleep(0.2)
    states = {each["state"] for each in documents(client)}
    pytest.fail(f"{len(documents(client))} documents, states {states}")


def searches(client: httpx.Client) -> list[list[tuple[str, float]]]:
    queries = [f"marker{number} violet" for number in range(0, DOCUMENTS, 17)] + ["copper lantern", "thunder meadow"]
    answers = []
    for query in queries:
        answer = client.post("/v1/collections/crash/search", json={"query": query, "top_k": 10})
        assert answer.status_code == 200, answer.text
        answers.append([(hit["chunk_id"], round(hit["score"], 6)) for hit in answer.json()["data"]])
    return answers


@pytest.mark.slow
def test_a_server_killed_at_random_moments_of_an_ingest_loses_and_doubles_nothing(
    make_server: Callable[..., Any],
) -> None:
    server = make_server()
    chosen = random.Random(7)
    with server.client() as client:
        assert client.put("/v1/collections/crash", json={}).status_code == 201
        put_all(client)
    for _ in range(KILLS):
        time.sleep(chosen.uniform(0.0, 0.4))
        server.kill()
        server.start()
    with server.client(timeout=120) as client:
        found = wait_until_ready(client)
        assert sorted(each["id"] for each in found) == sorted(f"doc-{number}" for number in range(DOCUMENTS))
        assert all(each["version"] == 1 for each in found)
        report = client.post("/v1/collections/crash/verify", headers={"Prefer": "wait=60"}).json()
        assert report == report | {"clean": True, "differences": []}
        before = searches(client)
        job = client.post("/v1/collections/crash/rebuild", headers={"Prefer": "wait=60"})
        assert job.status_code == 200, job.text
        assert searches(client) == before


def test_a_job_cut_in_half_goes_on_from_its_last_batch_as_attempt_two(make_server: Callable[..., Any]) -> None:
    server = make_server()
    text = "\n\n".join(document(number)["text"] for number in range(400))
    with server.client() as client:
        client.put("/v1/collections/crash", json={"chunking": {"size": 200, "overlap": 0}})
        accepted = client.put("/v1/collections/crash/documents/long", json={"text": text})
        assert accepted.status_code == 202
        job_url = accepted.headers["Location"]
        deadline = time.monotonic() + FINISH_SECONDS
        while client.get(job_url).json()["stage"] not in ("embed", "write", "index"):
            assert time.monotonic() < deadline
    server.kill()
    server.start()
    with server.client() as client:
        deadline = time.monotonic() + FINISH_SECONDS
        while (job := client.get(job_url).json())["state"] in ("queued", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        answer = client.get("/v1/collections/crash/documents/long").json()
        assert (answer["state"], answer["version"]) == ("ready", 1)


def test_a_delete_cut_by_a_kill_can_be_said_again(make_server: Callable[..., Any]) -> None:
    server = make_server()
    with server.client() as client:
        client.put("/v1/collections/crash", json={})
        put_all(client)
        wait_until_ready(client)
        with pytest.raises(httpx.TransportError), httpx.Client(timeout=0.001) as impatient:
            impatient.delete(f"{server.url}/v1/collections/crash/documents/doc-3", headers=dict(client.headers))
    server.kill()
    server.start()
    with server.client() as client:
        again = client.delete("/v1/collections/crash/documents/doc-3")
        assert again.status_code in (204, 404)
        assert client.get("/v1/collections/crash/documents/doc-3").status_code == 404
        assert client.post("/v1/collections/crash/verify", headers={"Prefer": "wait=60"}).json()["clean"] is True
