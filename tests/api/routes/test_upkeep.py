"""Verify, rebuild, compact, deduplicate."""

import os
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.inference.embedders.hashed import HashedEmbedder
from app.ingestion import sources

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
    client.post("/v1/collections/c/search", json={"query": "quagmiretext", "queries": ["quagmirenote"]})
    client.post("/v1/collections/c/ask", json={"question": "quagmireshort?"})
    assert len(client.get("/v1/collections/c/queries").json()["data"]) == 2
    client.post("/v1/collections/c/search", json={"query": "quagmire that waits to be written"})
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


def test_a_file_that_just_arrived_is_awaited_without_holding_a_thread(
    admin: TestClient, application: FastAPI, collection: str, put: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ADOPTION_GRACE_SECONDS", 2.0)
    put(collection, "young", "the youngest of words")
    original = _original(application, collection, "young")
    admin.delete(f"/v1/collections/{collection}/documents/young")
    assert original.exists()
    job = admin.post(f"/v1/collections/{collection}/compact", headers=WAIT).json()
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert not original.exists()


PARAGRAPHS = [
    "Each parent may take leave until the child is eight years old.",
    "The warehouse opens at seven and closes at nineteen.",
    "Invoices are paid within thirty days of their arrival.",
]


def test_duplicates_are_reported_and_only_whole_documents_are_deleted_when_asked(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    admin.patch(f"/v1/collections/{collection}", json={"chunking": {"size": 70, "overlap": 0}})
    text = "\n\n".join(PARAGRAPHS)
    put(collection, "first", text)
    put(collection, "copy", text)
    put(collection, "partly", f"{PARAGRAPHS[1]}\n\nNobody else says that the lift is out of order.")
    put(collection, "copy-of-copy", text)
    path = f"/v1/collections/{collection}/deduplicate"
    report = admin.post(path, json={}, headers=WAIT).json()["result"]
    counts = {name: report[name] for name in ("chunks", "duplicates", "groups", "duplicate_documents")}
    assert counts == {"chunks": 11, "duplicates": 7, "groups": 3, "duplicate_documents": 2}
    assert report["first_documents"] == ["copy", "copy-of-copy"]
    largest = report["largest_groups"][0]
    assert (largest["kept"]["document_id"], largest["count"]) == ("first", 3)
    assert {each["document_id"] for each in largest["duplicates"]} == {"copy", "partly", "copy-of-copy"}
    assert all(each["cosine"] == 1 and each["same_text"] for each in largest["duplicates"])
    assert report["deleted_documents"] == 0
    assert len(admin.get(f"/v1/collections/{collection}/documents").json()["data"]) == 4

    deleted = admin.post(path, json={"delete": True, "groups": 1}, headers=WAIT).json()["result"]
    assert (deleted["deleted_documents"], len(deleted["largest_groups"])) == (2, 1)
    left = [each["id"] for each in admin.get(f"/v1/collections/{collection}/documents").json()["data"]]
    assert sorted(left) == ["first", "partly"]
    again = admin.post(path, json={"delete": True}, headers=WAIT).json()["result"]
    assert (again["duplicates"], again["deleted_documents"]) == (1, 0)
    assert admin.post(f"/v1/collections/{collection}/verify", headers=WAIT).json()["clean"] is True


def _mail(attached: str) -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Offer"
    message.set_content("The offer is attached.")
    message.add_attachment(attached, filename="offer.txt")
    return bytes(message)


def test_a_mail_goes_as_a_duplicate_only_together_with_all_that_is_attached_to_it(
    admin: TestClient, collection: str
) -> None:
    documents = f"/v1/collections/{collection}/documents"
    for name, attached in (("first", PARAGRAPHS[0]), ("says-more", PARAGRAPHS[1]), ("copy", PARAGRAPHS[0])):
        headers = {**WAIT, "Content-Type": "message/rfc822"}
        sent = admin.put(f"{documents}/{name}/original", content=_mail(attached), headers=headers)
        assert sent.status_code == 201, sent.text
        (job,) = admin.get("/v1/jobs", params={"document_id": f"{name}~offer.txt"}).json()["data"]
        admin.get(f"/v1/jobs/{job['id']}/events")
    done = admin.post(f"/v1/collections/{collection}/deduplicate", json={"delete": True}, headers=WAIT).json()["result"]
    assert (done["duplicate_documents"], done["deleted_documents"]) == (3, 1)
    left = [each["id"] for each in admin.get(documents).json()["data"]]
    assert left == ["first", "first~offer.txt", "says-more", "says-more~offer.txt"]


def test_many_copies_of_one_text_make_one_group(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    documents = [{"id": f"d{number}", "text": PARAGRAPHS[0]} for number in range(50)]
    admin.post(f"/v1/collections/{collection}/documents", json={"documents": documents}, headers={"Prefer": "wait=60"})
    report = admin.post(f"/v1/collections/{collection}/deduplicate", json={"threshold": 1.0}, headers=WAIT).json()
    result = report["result"]
    assert (result["groups"], result["duplicates"], result["duplicate_documents"]) == (1, 49, 49)
    assert len(result["largest_groups"][0]["duplicates"]) == 20


def test_what_is_below_the_threshold_is_no_duplicate(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "a", "the red house on the hill by the river")
    put(collection, "b", "the red house on the hill by the lake")
    path = f"/v1/collections/{collection}/deduplicate"
    assert admin.post(path, json={}, headers=WAIT).json()["result"]["duplicates"] == 0
    assert admin.post(path, json={"threshold": 0.5}, headers=WAIT).json()["result"]["duplicates"] == 1
    assert admin.post(path, json={"threshold": 1.5}).status_code == 422
