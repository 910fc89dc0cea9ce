"""Several server processes on one data folder agree with each other."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

LOAD_SECONDS = 60.0


def test_a_new_collection_is_there_for_every_worker(make_server: Callable[..., Any]) -> None:
    server = make_server(workers=2)
    with server.client() as client:
        assert client.put("/v1/collections/fresh", json={}).status_code == 201
    statuses = []
    for _ in range(50):
        # A connection of its own each time, so that both processes are asked.
        with server.client() as client:
            statuses.append(client.get("/v1/collections/fresh").status_code)
    assert statuses == [200] * 50


def test_what_one_worker_has_written_every_worker_finds(make_server: Callable[..., Any]) -> None:
    server = make_server(workers=2)
    with server.client() as client:
        client.put("/v1/collections/shared", json={})
        for number in range(10):
            put = client.put(
                f"/v1/collections/shared/documents/d{number}",
                json={"text": f"The password of room {number} is heron{number}."},
                headers={"Prefer": "wait=30"},
            )
            assert put.status_code == 201, put.text
            for mode in ("keyword", "dense", "hybrid"):
                for _ in range(4):
                    with server.client() as another:
                        answer = another.post(
                            "/v1/collections/shared/search", json={"query": f"heron{number}", "mode": mode, "top_k": 1}
                        ).json()
                    assert [hit["document_id"] for hit in answer["data"]] == [f"d{number}"]


@pytest.mark.slow
def test_ingest_delete_and_search_side_by_side_meet_no_error(make_server: Callable[..., Any]) -> None:
    server = make_server(workers=4)
    with server.client() as client:
        client.put("/v1/collections/busy", json={})
    failures: list[str] = []
    until = time.monotonic() + LOAD_SECONDS

    def repeat(step: Callable[[Any, int], Any]) -> None:
        number = 0
        with server.client() as client:
            while time.monotonic() < until:
                answer = step(client, number)
                number += 1
                if answer.status_code >= 400 and answer.status_code != 404:
                    failures.append(f"{answer.status_code} {answer.text}")

    steps = [
        lambda client, n: client.put(
            f"/v1/collections/busy/documents/d{n % 40}",
            json={"text": f"Round {n}: the quick brown fox number {n}."},
            headers={"Prefer": "wait=30"},
        ),
        lambda client, n: client.delete(f"/v1/collections/busy/documents/d{n * 7 % 40}"),
        lambda client, n: client.post("/v1/collections/busy/search", json={"query": f"fox {n}"}),
        lambda client, n: client.post("/v1/collections/busy/search", json={"query": f"brown {n}", "mode": "keyword"}),
    ]
    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A put whose document is deleted while it is in work ends as `cancelled` (409), which is no fault.
    assert [failure for failure in failures if '"cancelled"' not in failure] == []
    with server.client() as client:
        assert client.post("/v1/collections/busy/verify", headers={"Prefer": "wait=60"}).json()["clean"] is True
    assert "database is locked" not in server.log.read_text(errors="replace")
