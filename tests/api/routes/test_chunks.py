from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

TEXT = "# Leave\n\nEach parent may take 320 days.\n\n" + "## Pay\n\n" + "Pay comes monthly. " * 200


def preview(client: TestClient, **body: Any) -> Any:
    answer = client.post("/v1/chunk/preview", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: TestClient, **body: Any) -> tuple[int, list[str]]:
    answer = client.post("/v1/chunk/preview", json=body)
    return answer.status_code, [error["pointer"] for error in answer.json().get("errors", [])]


def test_counts_are_of_all_chunks_and_the_first_are_shown(admin: TestClient) -> None:
    shown = preview(admin, text=TEXT, format="markdown", chunking={"size": 300}, limit=3)
    assert len(shown["data"]) == 3
    assert shown["has_more"] is True
    assert shown["children"]["total"] > 10
    assert shown["children"]["characters"]["max"] <= 300
    assert shown["parents"] is None
    assert shown["chunking"] == {"strategy": "auto", "size": 300, "overlap": 0, "unit": "characters"}
    assert shown["characters"] == len(TEXT)
    for chunk in shown["data"]:
        assert chunk["text"] == TEXT[chunk["start"] : chunk["end"]]
    assert shown["data"][0]["heading_path"] == ["Leave"]


def test_parents_are_counted_apart(admin: TestClient) -> None:
    chunking = {"strategy": "parent_child", "mode": "heading", "size": 200}
    shown = preview(admin, text=TEXT, chunking=chunking, limit=100)
    parents = [chunk for chunk in shown["data"] if chunk["kind"] == "parent"]
    assert shown["parents"]["total"] == len(parents) == 3
    assert shown["children"]["total"] == len(shown["data"]) - len(parents)
    assert {chunk["parent"] for chunk in shown["data"] if chunk["kind"] == "child"} == {p["ordinal"] for p in parents}


def test_sentences_that_were_compared_are_counted(admin: TestClient) -> None:
    text = " ".join(f"Sentence number {n} is about something of its own." for n in range(60))
    assert preview(admin, text=text, chunking={"strategy": "semantic"})["sentences_embedded"] == 60


def test_a_document_is_cut_as_it_would_be_again(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "a", TEXT, format="markdown", chunking={"strategy": "fixed", "size": 100})
    shown = preview(admin, collection=collection, document_id="a", limit=2)
    assert shown["chunking"]["strategy"] == "fixed"
    stored = admin.get(f"/v1/collections/{collection}/documents/a/chunks", params={"limit": 2}).json()["data"]
    assert [chunk["text"] for chunk in shown["data"]] == [chunk["text"] for chunk in stored]
    other = preview(admin, collection=collection, document_id="a", chunking={"strategy": "records"})
    assert other["chunking"] == {"strategy": "records", "records": 1}


@pytest.mark.parametrize("body", [{}, {"document_id": "a"}])
def test_a_collection_of_another_tenant_is_not_there(
    collection: str,
    key_for: Callable[..., TestClient],
    admin: TestClient,
    put: Callable[..., Any],
    body: dict[str, str],
) -> None:
    put(collection, "a", "secret words")
    admin.put("/v1/collections/preview-other", json={})
    other = key_for("owner", "preview-other")
    text = {} if body else {"text": "mine"}
    assert refused(other, collection=collection, **body, **text)[0] == 404
    assert preview(other, text="mine")["children"]["total"] == 1
    mine = key_for("search", collection)
    assert preview(mine, collection=collection, document_id="a")["data"][0]["text"] == "secret words"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": "a", "document_id": "b", "collection": "c"}, "/text"),
        ({"document_id": "b"}, "/collection"),
        ({"text": "a", "chunking": {"strategy": "none", "size": 4}}, "/chunking/size"),
        ({"text": "a", "chunking": {"size": 4, "overlap": 4}}, "/chunking/overlap"),
        ({"text": "a", "chunking": {"strategy": "markdwon"}}, "/chunking/strategy"),
        ({"text": "a", "limit": 101}, "/limit"),
        ({"text": "x" * 1_000_001}, "/text"),
        (
            {"text": "abc", "chunking": {"strategy": "custom", "chunks": [{"start": 1, "end": 9}]}},
            "/chunking/chunks/0/end",
        ),
    ],
)
def test_what_is_wrong_is_pointed_at(admin: TestClient, body: dict[str, Any], pointer: str) -> None:
    assert refused(admin, **body) == (422, [pointer])
