"""A collection moves to another model without a gap."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.inference.embedders.hashed import HashedEmbedder
from app.retrieval.plan import SearchPlan
from app.retrieval.planning import build_plan
from app.retrieval.present import search_present
from app.retrieval.search import SearchResult
from app.settings import Settings

WAIT = {"Prefer": "wait=60"}
STEP_SECONDS = 20.0
WORDS = ["harbour", "violet", "engine", "lantern", "granite", "meadow", "copper", "orchid", "thunder", "velvet"]
QUERIES = ["violet harbour engine", "copper thunder", "marker7 granite"]


def vectors_of_b(texts: list[str], dimensions: int) -> np.ndarray[Any, Any]:
    """Return what the other model makes of texts: it reads them backwards, in other dimensions."""
    read = HashedEmbedder().embed_passages([text[::-1] for text in texts])
    padded = np.zeros((len(texts), dimensions), np.float32)
    padded[:, np.random.default_rng(5).permutation(dimensions)[: read.shape[1]]] = read
    return padded


def serve_b(model_server: Any, dimensions: int) -> dict[str, Any]:
    """Make the model server embed as the other model, and return the settings of a service that may use it."""

    def respond(sent: Any) -> Any:
        rows = vectors_of_b(sent.body["input"], dimensions).tolist()
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return model_server.Reply(body={"object": "list", "data": data, "model": "b", "usage": usage})

    model_server.respond = respond
    server = {"embedding_base_url": model_server.url, "embedding_model": "b", "embedding_batch": 8}
    # What one collection has embedded must not make the other's move quick.
    return {**server, "embedding_cache_bytes": 0}


def slow_down(model_server: Any) -> threading.Semaphore:
    """Let the other model embed a batch for each release, so that something happens while it embeds a collection."""
    respond, steps = model_server.respond, threading.Semaphore(0)

    def respond_late(sent: Any) -> Any:
        if len(sent.body["input"]) > 1:
            steps.acquire(timeout=STEP_SECONDS)
        return respond(sent)

    model_server.respond = respond_late
    return steps


def document(number: int) -> dict[str, Any]:
    chosen = np.random.default_rng(number).choice(WORDS, 24)
    return {"id": f"doc-{number}", "title": f"Note {number}", "text": f"marker{number} " + " ".join(chosen)}


def fill(client: TestClient, name: str, numbers: range, model: str | None = None) -> None:
    client.put(f"/v1/collections/{name}", json={"embedding": {"model": model}} if model else {})
    documents = [document(number) for number in numbers]
    put = client.post(f"/v1/collections/{name}/documents", json={"documents": documents}, headers=WAIT)
    assert {each["outcome"] for each in put.json()["results"]} == {"created"}


def answer(client: TestClient, name: str, query: str) -> list[tuple[str, float]]:
    """Return the documents and dense scores that a query finds."""
    found = client.post(f"/v1/collections/{name}/search", json={"query": query, "mode": "dense", "top_k": 8})
    assert found.status_code == 200, found.text
    return [(hit["document_id"], round(hit["score"], 4)) for hit in found.json()["data"]]


def answers(client: TestClient, name: str) -> list[list[tuple[str, float]]]:
    return [answer(client, name, query) for query in QUERIES]


class Searching:
    """A client that searches without pause until it is told to stop, and keeps every answer."""

    def __init__(self, client: TestClient, name: str, steps: threading.Semaphore) -> None:
        self.seen: list[Any] = []
        self._steps = steps
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._search, args=(client, name))

    def _search(self, client: TestClient, name: str) -> None:
        while not self._stop.is_set():
            try:
                self.seen.append(answer(client, name, QUERIES[0]))
            except AssertionError as failure:
                self.seen.append(str(failure))
            self._steps.release()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("dimensions", [384, 768])
def test_searches_answer_in_one_space_or_the_other_while_a_collection_moves(
    started: Callable[..., TestClient], model_server: Any, dimensions: int
) -> None:
    client = started(**serve_b(model_server, dimensions))
    fill(client, "c", range(32))
    fill(client, "fresh", range(32), model="b")
    before, fresh = answers(client, "c"), answers(client, "fresh")
    assert before != fresh
    listed = client.get("/v1/collections/c/documents?limit=200").json()["data"]
    chunks = client.get("/v1/collections/c/documents/doc-7/chunks").json()
    with Searching(client, "c", slow_down(model_server)) as searching:
        moved = client.post("/v1/collections/c/reembed", json={"model": "b"}, headers=WAIT).json()
        after = answers(client, "c")
    assert (moved["state"], moved["result"]["embedded"]) == ("succeeded", 32), moved
    assert [each for each in searching.seen if each not in (before[0], fresh[0])] == []
    assert searching.seen.count(before[0]) > 1
    assert after == fresh
    assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}
    assert client.get("/v1/collections/c/documents?limit=200").json()["data"] == listed
    assert client.get("/v1/collections/c/documents/doc-7/chunks").json()["data"] == chunks["data"]
    assert client.get("/v1/collections/c").json()["embedding"]["model"] == "b"
    assert client.get("/v1/collections/c/stats").json()["embedding"]["dimensions"] == dimensions
    again = document(7)
    put = client.put(f"/v1/collections/c/documents/{again.pop('id')}", json=again, headers=WAIT)
    assert put.json()["outcome"] == "unchanged"


def test_documents_that_are_written_during_the_move_move_too(
    started: Callable[..., TestClient], model_server: Any
) -> None:
    client = started(**serve_b(model_server, 384))
    fill(client, "c", range(32))
    steps = slow_down(model_server)
    job = client.post("/v1/collections/c/reembed", json={"model": "b"}).json()
    number = 32
    while client.get(f"/v1/jobs/{job['id']}").json()["state"] in ("queued", "running"):
        body = document(number)
        put = client.put(f"/v1/collections/c/documents/{body.pop('id')}", json=body, headers=WAIT)
        assert put.status_code == 201, put.text
        number += 1
        steps.release()
    assert client.get(f"/v1/jobs/{job['id']}").json()["state"] == "succeeded"
    assert number > 32
    fill(client, "fresh", range(number), model="b")
    assert answers(client, "c") == answers(client, "fresh")
    assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}


def test_a_collection_of_a_model_that_is_gone_says_how_to_move_it(
    started: Callable[..., TestClient], model_server: Any, tmp_path: Any
) -> None:
    settings = {**serve_b(model_server, 768), "embedder": "openai_compatible", "data": tmp_path / "data"}
    client = started(**settings)
    fill(client, "c", range(30))
    client = started(data=tmp_path / "data")
    refused = client.post("/v1/collections/c/search", json={"query": "violet", "mode": "dense"})
    assert (refused.status_code, refused.json()["code"]) == (409, "embedding_model_mismatch")
    assert "reembed" in refused.json()["hint"]
    assert client.post("/v1/collections/c/search", json={"query": "violet", "mode": "keyword"}).status_code == 200
    unknown = client.post("/v1/collections/c/reembed", json={"model": "b"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/model")
    model = client.app.state.services.embedders.default_model
    assert client.post("/v1/collections/c/reembed", json={"model": model}, headers=WAIT).json()["state"] == "succeeded"
    fill(client, "fresh", range(30))
    assert answers(client, "c") == answers(client, "fresh")


def test_an_enhanced_collection_moves_with_all_its_fields(
    started: Callable[..., TestClient], model_server: Any
) -> None:
    client = started(**serve_b(model_server, 384))
    text = "\n\n".join(f"# Part {part}\n\n" + document(part)["text"] for part in range(40))
    found = {}
    for name, model in (("c", None), ("fresh", "b")):
        body: dict[str, Any] = {"indexing": "enhanced", "chunking": {"strategy": "parent_child"}}
        made = client.put(f"/v1/collections/{name}", json=body | ({"embedding": {"model": model}} if model else {}))
        assert made.status_code == 201, made.text
        put = client.put(
            f"/v1/collections/{name}/documents/long", json={"text": text, "format": "markdown"}, headers=WAIT
        )
        assert put.status_code == 201, put.text
    assert client.post("/v1/collections/c/reembed", json={"model": "b"}, headers=WAIT).json()["state"] == "succeeded"
    services = client.app.state.services
    for name in ("c", "fresh"):
        with services.opened.get(services.collections.get(name).id) as opened:
            found[name] = [
                search_present(
                    opened,
                    partial(services.embedders.of_vectors, model_name="b"),
                    services.models,
                    name,
                    plan(query, field),
                )
                for field in ("content", "context", "parent")
                for query in QUERIES
            ]
    assert _passages(found["c"]) == _passages(found["fresh"])
    assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}


def plan(query: str, field: str) -> SearchPlan:
    return build_plan(query, Settings(), mode="dense", top_k=8, fields=[field])


def _passages(found: list[SearchResult]) -> list[list[tuple[str, float]]]:
    return [[(passage.text, round(passage.score, 4)) for passage in result.passages] for result in found]
