"""Verify, rebuild."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.inference.embedders.hashed import HashedEmbedder

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


def files_with(data: Path, secret: bytes) -> list[str]:
    """Return the files below the data folder that hold these bytes."""
    return sorted(
        str(path.relative_to(data)) for path in data.rglob("*") if path.is_file() and secret in path.read_bytes()
    )


def age_originals(data: Path) -> None:
    """Make every original older than the minute in which nobody may remove it."""
    for path in data.glob("collections/*/originals/*"):
        os.utime(path, (0, 0))


def test_after_delete_and_compact_the_deleted_words_are_in_no_file(started: Callable[..., TestClient]) -> None:
    client = started()
    data: Path = client.app.state.services.settings.data
    client.put("/v1/collections/c", json={"keep_versions": 0})
    vector = HashedEmbedder().embed_passages(["quagmiretitle\nquagmireshort"])[0].tobytes()
    short = {"id": "short", "text": "quagmireshort", "title": "quagmiretitle"}
    secret = {
        "id": "id-quagmirestone",
        "text": "the word quagmiretext stands " + " ".join(f"here{i}" for i in range(2000)),
        "title": "quagmiretitle",
        "metadata": {"note": "quagmirenote", "tags": ["quagmiretag"]},
    }
    replaced = {"id": "stays", "text": "an old text with quagmireold inside", "title": "Lighthouse"}
    stays = {"id": "stays", "text": "what stays is lighthouse", "title": "Lighthouse"}
    for number, documents in enumerate(([secret, short, replaced], [stays])):
        sent = client.post(
            "/v1/collections/c/documents",
            json={"documents": documents},
            headers={**WAIT, "Idempotency-Key": f"key-{number}"},
        )
        assert sent.status_code == 200, sent.text
    broken = {"filename": "quagmirefile.pdf", "title": "quagmirebroken"}
    client.put("/v1/collections/c/documents/broken/original", params=broken, content=b"%PDF-1.4 no", headers=WAIT)
    assert files_with(data, vector)
    for document_id in ("id-quagmirestone", "short", "broken"):
        assert client.delete(f"/v1/collections/c/documents/{document_id}").status_code == 204
    assert len(files_with(data, b"quagmire")) > 3
    age_originals(data)
    compacted = client.post("/v1/collections/c/compact", headers=WAIT)
    assert (compacted.status_code, compacted.json()["state"]) == (200, "succeeded"), compacted.text
    assert client.get("/v1/jobs").json()["data"][0]["kind"] == "compact"
    assert files_with(data, b"quagmire") == []
    assert files_with(data, vector) == []
    found = client.post("/v1/collections/c/search", json={"query": "lighthouse"}).json()["data"]
    assert [hit["document_id"] for hit in found] == ["stays"]
    assert client.post("/v1/collections/c/verify", headers=WAIT).json() == {"clean": True, "differences": []}
