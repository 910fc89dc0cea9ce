"""From the second at which a document's time is over it is gone for every reader, though it is deleted later."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

OVER = "2020-01-01T00:00:00Z"
FILTER = {"field": "team", "op": "eq", "value": "hr"}
WAIT = {"Prefer": "wait=30"}


@pytest.fixture
def ended(admin: TestClient, collection: str, put: Callable[..., Any]) -> str:
    put(collection, "stays", "words that stay", metadata={"team": "hr"})
    put(collection, "ends", "words that end", metadata={"team": "hr"}, expires_at=OVER)
    return collection


@pytest.mark.parametrize("mode", ["dense", "keyword", "hybrid"])
@pytest.mark.parametrize("more", [{}, {"filter": FILTER}, {"document_ids": ["ends", "stays"]}])
def test_no_search_finds_it(admin: TestClient, ended: str, mode: str, more: dict[str, Any]) -> None:
    answer = admin.post(f"/v1/collections/{ended}/search", json={"query": "words", "mode": mode, **more}).json()
    assert [hit["document_id"] for hit in answer["data"]] == ["stays"]


def test_no_answer_uses_it(admin: TestClient, ended: str) -> None:
    answer = admin.post(f"/v1/collections/{ended}/ask", json={"question": "Which words end?"}).json()
    assert {source["document_id"] for source in answer["sources"]} == {"stays"}


def test_it_is_read_and_listed_by_nobody(admin: TestClient, ended: str, key_for: Callable[..., TestClient]) -> None:
    path = f"/v1/collections/{ended}/documents"
    for client in (admin, key_for("search", ended, filter=FILTER)):
        assert [each["id"] for each in client.get(path).json()["data"]] == ["stays"]
        for rest in ("", "/text", "/original", "/chunks", "/versions"):
            assert client.get(f"{path}/stays{rest}").status_code == 200
            assert client.get(f"{path}/ends{rest}").status_code == 404
    assert admin.patch(f"{path}/ends", json={"title": "t"}).status_code == 404


def test_it_can_be_put_again_or_deleted(admin: TestClient, ended: str, key_for: Callable[..., TestClient]) -> None:
    client = key_for("ingest", ended, filter=FILTER)
    path = f"/v1/collections/{ended}/documents/ends"
    again = {"text": "words that end", "metadata": {"team": "hr"}}
    assert client.put(path, json=again, headers=WAIT).json()["outcome"] == "metadata_updated"
    assert client.get(path).status_code == 200
    assert admin.put(path, json=again | {"expires_at": OVER}, headers=WAIT).status_code == 200
    assert client.delete(path).status_code == 204
    stored = admin.get(f"/v1/collections/{ended}/stats").json()["documents"]
    assert sum(stored.values()) == 1, stored


def test_documents_older_than_their_collection_keeps_them_are_gone(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "old", "words of old")
    path = f"/v1/collections/{collection}"
    # A ten-millionth of a day is over by now.
    assert admin.patch(path, json={"max_age_days": 1e-7}).status_code == 200
    assert admin.post(f"{path}/search", json={"query": "words"}).json()["data"] == []
    assert admin.get(f"{path}/documents/old").status_code == 404
    assert admin.get(f"{path}/documents").json()["data"] == []
    admin.patch(path, json={"max_age_days": None})
    assert admin.get(f"{path}/documents/old").status_code == 200
