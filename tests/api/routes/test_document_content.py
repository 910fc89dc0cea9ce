from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

TEXT = "Äpfel und 🍏 wachsen. 苹果树开花。\nDie Ernte beginnt im Herbst."


def test_the_text_of_a_passage_is_exactly_the_text_at_its_offsets(admin: TestClient, put: Callable[..., Any]) -> None:
    admin.put("/v1/collections/offsets", json={"chunking": {"size": 12, "overlap": 0}})
    put("offsets", "d", TEXT)
    hits = admin.post("/v1/collections/offsets/search", json={"query": "Äpfel Ernte", "top_k": 50}).json()["data"]
    assert hits
    for hit in hits:
        piece = admin.get("/v1/collections/offsets/documents/d/text", params={"start": hit["start"], "end": hit["end"]})
        assert piece.text == hit["text"] == TEXT[hit["start"] : hit["end"]]


def test_the_whole_text_is_plain_utf_8(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "d", TEXT)
    answer = admin.get(f"/v1/collections/{collection}/documents/d/text")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode() == TEXT
    beyond = admin.get(f"/v1/collections/{collection}/documents/d/text", params={"start": 10_000})
    assert (beyond.status_code, beyond.text) == (200, "")


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"start": 5, "end": 4}, "query:end"),
        ({"start": -1}, "query:start"),
        ({"start": "a"}, "query:start"),
        ({"start": 10**30}, "query:start"),
        ({"begin": 1}, "query:begin"),
    ],
)
def test_offsets_that_mean_nothing_are_refused(
    admin: TestClient, collection: str, put: Callable[..., Any], params: dict[str, Any], pointer: str
) -> None:
    put(collection, "d", TEXT)
    refused = admin.get(f"/v1/collections/{collection}/documents/d/text", params=params)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_chunks_come_by_ordinal_in_pages(admin: TestClient, put: Callable[..., Any]) -> None:
    admin.put("/v1/collections/chunked", json={"chunking": {"size": 12, "overlap": 0}})
    put("chunked", "d", TEXT)
    path = "/v1/collections/chunked/documents/d/chunks"
    everything = admin.get(path, params={"limit": 200}).json()
    assert everything["has_more"] is False
    first = admin.get(path, params={"limit": 2}).json()
    rest = admin.get(path, params={"limit": 200, "cursor": first["next_cursor"]}).json()
    assert first["data"] + rest["data"] == everything["data"]
    assert [chunk["ordinal"] for chunk in everything["data"]] == list(range(len(everything["data"])))
    assert all(chunk["text"] == TEXT[chunk["start"] : chunk["end"]] for chunk in everything["data"])
    assert admin.get(path, params={"cursor": "x"}).status_code == 422


def test_an_original_comes_back_as_it_was_sent(admin: TestClient, collection: str) -> None:
    content = "客户".encode("gbk") * 300_000
    path = f"/v1/collections/{collection}/documents/d/original"
    sent = admin.put(
        path,
        params={"filename": "客户 1.txt"},
        content=content,
        headers={"Content-Type": "text/plain", "Prefer": "wait=60"},
    )
    assert sent.status_code == 201, sent.text
    answer = admin.get(path)
    assert answer.content == content
    assert answer.headers["Content-Type"] == "text/plain"
    assert answer.headers["Content-Length"] == str(len(content))
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''%E5%AE%A2%E6%88%B7%201.txt"
    assert answer.headers["Content-Security-Policy"] == "sandbox"
