"""What large documents need goes back to the system once nobody uses their collection."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

DOCUMENTS = 15
CHARACTERS = 2_000_000
WORDS = ["harbour", "violet", "engine", "lantern", "granite", "meadow", "copper", "orchid", "thunder", "velvet"]
CLOSED_SECONDS = 60.0
RETURNED_SECONDS = 20.0
MAY_GROW = 1.2


def text_of(seed: int) -> str:
    chosen = np.random.default_rng(seed)
    paragraph = " ".join(chosen.choice(WORDS, 100))
    return "\n\n".join(f"{number} of {seed}: {paragraph}" for number in range(CHARACTERS // len(paragraph)))


def put_all(client: httpx.Client, collection: str, documents: int) -> None:
    # Large chunks, since what is kept by mistake is text, and few of them are soon embedded.
    client.put(f"/v1/collections/{collection}", json={"chunking": {"size": 8000, "overlap": 0}}).raise_for_status()
    for number in range(documents):
        url = f"/v1/collections/{collection}/documents/d{number}"
        put = client.put(url, json={"text": text_of(number)}, headers={"Prefer": "wait=60"})
        assert put.status_code == 201, put.text


def private_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("RssAnon:")[2].split()[0]) * 1024


def has_a_collection_open(pid: int) -> bool:
    return any(_target(link).endswith("collection.db") for link in Path(f"/proc/{pid}/fd").iterdir())


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def wait_for(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="tells a process's memory by /proc")
def test_memory_returns_after_many_large_documents(make_server: Callable[..., Any]) -> None:
    server = make_server(idle_seconds="1", embedding_cache_bytes="0")
    with server.client() as client:
        put_all(client, "before", 3)
        assert wait_for(lambda: not has_a_collection_open(server.pid), CLOSED_SECONDS)
        before = private_bytes(server.pid)
        put_all(client, "many", DOCUMENTS)
        assert wait_for(lambda: not has_a_collection_open(server.pid), CLOSED_SECONDS)
        returned = wait_for(lambda: private_bytes(server.pid) <= MAY_GROW * before, RETURNED_SECONDS)
        assert returned, (before, private_bytes(server.pid))
        stats = client.get("/v1/collections/many/stats").json()
        assert stats["documents"]["ready"] == DOCUMENTS
