"""A job is followed over HTTP while it runs, from another process than the one that works."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

SENTENCES = 12_000
STOP_SECONDS = 10.0


def events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in answer.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            yield event
            event = {}


def long_document(client: httpx.Client, document_id: str) -> str:
    text = "\n\n".join(
        f"Sentence {number} of {document_id} tells of harbours and lanterns." for number in range(SENTENCES)
    )
    body = {"text": text}
    queued = client.put(f"/v1/collections/c/documents/{document_id}", json=body)
    assert queued.status_code == 202, queued.text
    return queued.headers["Location"]


def test_a_job_is_followed_to_its_end_and_a_reader_that_was_cut_off_goes_on(make_server: Callable[..., Any]) -> None:
    server = make_server(workers=2, stream_heartbeat_seconds="1")
    with server.client() as client:
        client.put("/v1/collections/c", json={"chunking": {"size": 80}})
        place = long_document(client, "long")
        with client.stream("GET", f"{place}/events") as answer:
            assert answer.status_code == 200
            first = next(events(answer))
        assert json.loads(first["data"])["state"] in ("queued", "running")
        with client.stream("GET", f"{place}/events", headers={"Last-Event-ID": first["id"]}) as answer:
            rest = list(events(answer))
        ids = [int(event["id"]) for event in (first, *rest)]
        assert ids == sorted(set(ids))
        states = [json.loads(event["data"]) for event in rest]
        assert states[-1]["state"] == "succeeded"
        assert states[-1] == client.get(place).json()
        assert {state["stage"] for state in states} & {"load", "embed", "write", "index"}


def test_a_server_that_is_stopped_does_not_wait_for_those_who_listen(make_server: Callable[..., Any]) -> None:
    server = make_server(ingest_threads="1")
    with server.client() as client:
        client.put("/v1/collections/c", json={"chunking": {"size": 80}})
        long_document(client, "first")
        place = long_document(client, "second")
        with client.stream("GET", f"{place}/events") as answer:
            assert next(events(answer))["event"] == "job"
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < STOP_SECONDS
