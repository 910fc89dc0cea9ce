"""kill -9 in the middle of upkeep: the work goes on, nothing is lost, and every process sees the end of it."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from app.inference.embedders.hashed import HashedEmbedder

FINISH_SECONDS = 120.0
WAIT = {"Prefer": "wait=60"}
STEP_SECONDS = 20.0
WORDS = ["harbour", "violet", "engine", "lantern", "granite", "meadow", "copper", "orchid", "thunder", "velvet"]
QUERIES = ["violet harbour engine", "copper thunder"]


class Pace:
    """Let the other model embed one batch for each step, unless it is free."""

    def __init__(self) -> None:
        self.is_free = True
        self._steps = threading.Semaphore(0)

    def step(self) -> None:
        self._steps.release()

    def wait(self) -> None:
        if not self.is_free:
            self._steps.acquire(timeout=STEP_SECONDS)


def serve_b(model_server: Any, pace: Pace) -> dict[str, str]:
    """Make the model server embed texts backwards, and return the settings of a service that may use it."""

    def respond(sent: Any) -> Any:
        texts = sent.body["input"]
        if len(texts) > 1:
            pace.wait()
        rows = HashedEmbedder().embed_passages([text[::-1] for text in texts])
        data = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(rows)]
        return model_server.Reply(body={"object": "list", "data": data, "model": "b", "usage": {}})

    model_server.respond = respond
    server = {"embedding_base_url": model_server.url, "embedding_model": "b"}
    # What one collection has embedded must not make the other's move quick.
    return {**server, "embedding_cache_bytes": "0"}


def fill(client: httpx.Client, name: str, texts: int, body: dict[str, Any] | None = None) -> None:
    """Put one long document, so that most of the time goes into what is tested."""
    client.put(f"/v1/collections/{name}", json={"chunking": {"size": 120, "overlap": 0}} | (body or {}))
    chosen = np.random.default_rng(3)
    text = "\n\n".join(" ".join(chosen.choice(WORDS, 14)) + f" marker{number}." for number in range(texts))
    put = client.put(f"/v1/collections/{name}/documents/long", json={"text": text}, headers=WAIT)
    assert put.status_code == 201, put.text


def answers(client: httpx.Client, name: str) -> list[list[tuple[str, float]]]:
    found = []
    for query in QUERIES:
        answer = client.post(f"/v1/collections/{name}/search", json={"query": query, "mode": "dense", "top_k": 8})
        assert answer.status_code == 200, answer.text
        found.append([(hit["text"], round(hit["score"], 4)) for hit in answer.json()["data"]])
    return found


def states(client: httpx.Client, job_url: str) -> Iterator[dict[str, Any]]:
    """Yield the job again and again until it has ended; the last one is its end."""
    deadline = time.monotonic() + FINISH_SECONDS
    while time.monotonic() < deadline:
        job = client.get(job_url).json()
        yield job
        if job["state"] not in ("queued", "running"):
            return
    pytest.fail(f"the job did not end: {job}")


def test_a_reembedding_cut_by_kills_goes_on_from_its_last_batch_and_two_processes_swap(
    make_server: Callable[..., Any], model_server: Any
) -> None:
    pace = Pace()
    server = make_server(workers=2, **serve_b(model_server, pace))
    with server.client() as client:
        fill(client, "c", 400)
        fill(client, "fresh", 400, {"embedding": {"model": "b"}})
        before, fresh = answers(client, "c"), answers(client, "fresh")
        assert before != fresh
        pace.is_free = False
        # Batches of 64 texts: the fourth is held back, however late the third is told.
        for _ in range(3):
            pace.step()
        job_url = client.post("/v1/collections/c/reembed", json={"model": "b"}).headers["Location"]
        for job in states(client, job_url):
            assert job["state"] in ("queued", "running")
            if job["stage"] == "embed" and job["progress"]["done"] >= 128:
                break
    server.kill()
    embedded = sum(len(sent.body["input"]) for sent in model_server.sent)
    server.start()
    with server.client() as client:
        for job in states(client, job_url):
            # Another connection may reach the other process, which has to hear of the swap by itself.
            with server.client() as other:
                seen = answers(other, "c")
            assert all(each in (before[place], fresh[place]) for place, each in enumerate(seen)), job
            pace.step()
        assert (job["state"], job["attempt"]) == ("succeeded", 2), job
        again = sum(len(sent.body["input"]) for sent in model_server.sent) - embedded
        assert again < 400 - 100
        for _ in range(6):
            with server.client() as other:
                assert answers(other, "c") == fresh
        assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}
        assert client.get("/v1/collections/c").json()["embedding"]["model"] == "b"
        put = client.put("/v1/collections/c/documents/later", json={"text": "velvet orchid meadow"}, headers=WAIT)
        assert put.status_code == 201, put.text


def test_a_compaction_cut_by_a_kill_is_done_again(make_server: Callable[..., Any]) -> None:
    server = make_server()
    with server.client() as client:
        fill(client, "c", 3000)
        secret = client.put("/v1/collections/c/documents/secret", json={"text": "quagmiretext gone"}, headers=WAIT)
        assert secret.status_code == 201
        before = answers(client, "c")
        client.delete("/v1/collections/c/documents/secret")
        for path in server.data.glob("collections/*/originals/*"):
            os.utime(path, (0, 0))
        job_url = client.post("/v1/collections/c/compact").headers["Location"]
        for job in states(client, job_url):
            if job["stage"] in ("store", "index"):
                break
    server.kill()
    server.start()
    with server.client() as client:
        *_, job = states(client, job_url)
        assert job["state"] == "succeeded", job
        assert answers(client, "c") == before
        assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}
    held = [str(path) for path in server.data.rglob("*") if path.is_file() and b"quagmire" in path.read_bytes()]
    assert held == []
