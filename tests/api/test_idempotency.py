from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}


def test_a_batch_that_is_sent_twice_is_done_once(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents"
    body = {"documents": [{"id": "a", "text": "some words"}]}
    headers = WAIT | {"Idempotency-Key": "batch-1"}
    first = admin.post(path, json=body, headers=headers)
    again = admin.post(path, json=body, headers=headers)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Content-Type"] == "application/json"
    jobs = admin.get("/v1/jobs", params={"collection": collection}).json()["data"]
    assert len(jobs) == 1


def test_another_payload_under_the_same_key_is_refused(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents"
    headers = {"Idempotency-Key": "batch-2"}
    admin.post(path, json={"documents": [{"id": "a", "text": "one"}]}, headers=headers)
    refused = admin.post(path, json={"documents": [{"id": "a", "text": "two"}]}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert refused.json()["errors"][0]["pointer"] == "header:Idempotency-Key"


def test_the_bytes_of_an_upload_are_its_payload(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents/upload"
    headers = {"Idempotency-Key": "upload-1"}
    first = admin.post(path, files=[("files", ("a.txt", b"one"))], headers=headers)
    again = admin.post(path, files=[("files", ("a.txt", b"one"))], headers=headers)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    refused = admin.post(path, files=[("files", ("a.txt", b"two"))], headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")


def test_the_same_key_at_another_place_or_from_another_caller_is_another_request(
    admin: TestClient, collection: str, key_for: Callable[..., TestClient]
) -> None:
    path = f"/v1/collections/{collection}"
    headers = {"Idempotency-Key": "shared"}
    clients = [admin, key_for("owner", collection)]
    answers = [client.post(f"{path}/rebuild", headers=headers) for client in clients]
    answers.append(admin.post(f"{path}/documents/delete", json={"filter": {"or": []}}, headers=headers))
    assert ["Idempotent-Replayed" in answer.headers for answer in answers] == [False] * 3
    assert [answer.status_code for answer in answers] == [202, 202, 200]


def test_an_error_is_not_remembered(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    path = f"/v1/collections/{collection}/documents/d/retry"
    headers = {"Idempotency-Key": "retry-1"}
    assert admin.post(path, headers=headers).status_code == 404
    put(collection, "d", "some words")
    conflict = admin.post(path, headers=headers)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
