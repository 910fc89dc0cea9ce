"""Verify, rebuild."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}


def test_a_collection_is_clean_and_stays_so_when_its_index_is_rebuilt(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "a", "some words")
    path = f"/v1/collections/{collection}"
    assert admin.post(f"{path}/verify", headers=WAIT).json() == {"clean": True, "differences": []}
    rebuilt = admin.post(f"{path}/rebuild", headers=WAIT)
    assert (rebuilt.status_code, rebuilt.json()["state"]) == (200, "succeeded")
    assert admin.post(f"{path}/verify", headers=WAIT).json()["clean"] is True
    assert admin.post(f"{path}/search", json={"query": "words"}).json()["data"][0]["document_id"] == "a"


def test_a_rebuild_without_waiting_is_a_job(admin: TestClient, collection: str) -> None:
    queued = admin.post(f"/v1/collections/{collection}/rebuild")
    assert queued.status_code == 202
    assert queued.headers["Location"] == f"/v1/jobs/{queued.json()['id']}"
    assert "Preference-Applied" not in queued.headers


def test_verify_that_is_not_awaited_is_a_job_whose_result_is_the_verification(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "a", "some words")
    queued = admin.post(f"/v1/collections/{collection}/verify", headers={"Prefer": "wait=0"})
    assert (queued.status_code, queued.json()["kind"]) == (202, "verify")
    # Jobs on the whole collection run one after the other.
    admin.post(f"/v1/collections/{collection}/verify", headers=WAIT)
    job = admin.get(queued.headers["Location"]).json()
    assert (job["state"], job["result"]["clean"], job["result"]["differences"]) == ("succeeded", True, [])


def test_a_lost_and_a_damaged_original_are_each_named(
    application: FastAPI, admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    for document_id in ("lost", "damaged", "sound"):
        put(collection, document_id, f"the text of {document_id}")
    lost, damaged = (_original(application, collection, name) for name in ("lost", "damaged"))
    lost.unlink()
    damaged.write_bytes(b"other bytes")
    found = admin.post(f"/v1/collections/{collection}/verify", headers=WAIT).json()
    assert found["clean"] is False
    named = {(each["kind"], each["detail"].split()[2]) for each in found["differences"]}
    assert named == {("missing_original", lost.name), ("damaged_original", damaged.name)}


def _original(application: FastAPI, collection: str, document_id: str) -> Path:
    services = application.state.services
    with services.opened.get(services.collections.get(collection).id) as opened:
        return opened.folder / "originals" / opened.store.document(document_id).content_hash
