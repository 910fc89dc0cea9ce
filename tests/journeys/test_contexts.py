"""A language model writes contexts for a server that is killed, stopped and asked for progress meanwhile."""

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

PARTS = 12
ANSWERED = 5
WAIT_SECONDS = 60.0
TEXT = "\n\n".join(f"# Part {i}\n\nThe marker{i} of this part is described here at some length." for i in range(PARTS))
SETTINGS = {"contextualizer": "llm", "chunking": {"strategy": "markdown", "size": 120}}


class Slow:
    """Answers some passages and then holds every answer back until it is released."""

    def __init__(self, server: Any, answers: int) -> None:
        self._server, self._left = server, answers
        self._lock = threading.Lock()
        self.answered: list[str] = []
        self.holding = threading.Event()
        server.respond = self.respond

    def respond(self, sent: Any) -> Any:
        marker = re.findall(r"marker\d+", sent.body["messages"][-1]["content"])[0]
        with self._lock:
            self._left -= 1
            held = self._left < 0
        if held and not self._server.released.is_set():
            self.holding.set()
            self._server.released.wait(WAIT_SECONDS)
            return None
        self.answered.append(marker)
        return self._server.Reply(body=self._server.chat(f"About the depot of {marker}."))


@pytest.fixture
def server(make_server: Callable[..., Any], model_server: Any) -> Any:
    return make_server(language_model="scripted", language_model_base_url=model_server.url)


def begin(client: Any) -> str:
    assert client.put("/v1/collections/c", json=SETTINGS).status_code == 201
    accepted = client.put("/v1/collections/c/documents/d", json={"text": TEXT, "format": "markdown"})
    assert accepted.status_code == 202, accepted.text
    return str(accepted.headers["Location"])


def finished(client: Any, job_url: str) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while (job := client.get(job_url).json())["state"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job


def test_a_killed_job_asks_only_for_the_contexts_it_does_not_have(server: Any, model_server: Any) -> None:
    slow = Slow(model_server, ANSWERED)
    with server.client() as client:
        job_url = begin(client)
        assert slow.holding.wait(WAIT_SECONDS)
        deadline = time.monotonic() + WAIT_SECONDS
        while (job := client.get(job_url).json())["progress"]["done"] < ANSWERED:
            assert time.monotonic() < deadline
        assert (job["stage"], job["progress"]) == (
            "contextualize",
            {"done": ANSWERED, "total": PARTS, "unit": "chunks"},
        )
    server.kill()
    kept = list(slow.answered)
    slow.answered.clear()
    model_server.released.set()
    server.start()
    with server.client() as client:
        job = finished(client, job_url)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        assert sorted(kept + slow.answered) == sorted(f"marker{i}" for i in range(PARTS))
        assert (job["result"]["contexts"]["reused"], job["result"]["contexts"]["written"]) == (5, PARTS - 5)
        hits = client.post("/v1/collections/c/search", json={"query": "depot", "mode": "keyword", "top_k": 50}).json()
        assert len(hits["data"]) == PARTS
        assert all("depot" not in hit["text"] for hit in hits["data"])


def test_a_server_stops_at_once_although_a_model_does_not_answer(server: Any, model_server: Any) -> None:
    slow = Slow(model_server, 0)
    with server.client() as client:
        begin(client)
        assert slow.holding.wait(WAIT_SECONDS)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 10
