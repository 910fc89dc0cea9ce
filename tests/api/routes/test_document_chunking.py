"""Each document may be cut in its own way, at every door, and is cut so again."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}
TEXT = "First part here. Second part there. Third part."


def chunks_of(client: TestClient, collection: str, document_id: str) -> list[str]:
    answer = client.get(f"/v1/collections/{collection}/documents/{document_id}/chunks").json()
    return [chunk["text"] for chunk in answer["data"]]


def test_every_door_takes_the_chunking_of_a_document(admin: TestClient, collection: str) -> None:
    path, chunking = f"/v1/collections/{collection}/documents", {"strategy": "fixed", "size": 17}
    admin.put(f"{path}/put", json={"text": TEXT, "chunking": chunking}, headers=WAIT)
    admin.put(
        f"{path}/raw/original",
        content=TEXT,
        params={"chunking": json.dumps(chunking)},
        headers=WAIT | {"Content-Type": "text/plain"},
    )
    admin.post(path, json={"documents": [{"id": "batch", "text": TEXT, "chunking": chunking}]}, headers=WAIT)
    admin.post(
        f"{path}/upload",
        files=[("files", ("file.txt", TEXT.encode())), ("info", (None, json.dumps({"chunking": chunking})))],
        headers=WAIT,
    )
    for document_id in ("put", "raw", "batch", "file.txt"):
        assert chunks_of(admin, collection, document_id) == ["First part here.", "Second part there", ". Third part."]
        told = admin.get(f"{path}/{document_id}").json()["chunking"]
        assert told == {"strategy": "fixed", "size": 17, "overlap": 0, "unit": "characters"}


def test_a_document_is_cut_in_its_own_way_again(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    path = f"/v1/collections/{collection}/documents/a"
    first = put(collection, "a", TEXT, chunking={"strategy": "fixed", "size": 17})
    assert put(collection, "a", TEXT, chunking={"strategy": "fixed", "size": 17})["outcome"] == "unchanged"
    assert admin.patch(path, json={"metadata": {"a": 1}}).json()["outcome"] == "metadata_updated"
    renamed = admin.patch(path, json={"title": "Parts"}, headers=WAIT).json()
    assert renamed["chunking"]["strategy"] == "fixed"
    assert len(chunks_of(admin, collection, "a")) == 3
    plain = put(collection, "a", TEXT)
    assert plain["chunking"] is None
    assert plain["etag"] != first["etag"]
    assert chunks_of(admin, collection, "a") == [TEXT]
    restored = admin.post(f"{path}/restore", json={"version": 1}, headers=WAIT)
    assert restored.status_code == 200, restored.text
    assert len(chunks_of(admin, collection, "a")) == 3


@pytest.mark.parametrize(
    "body",
    [
        {"text": TEXT, "chunks": [{"start": 0, "end": 16}, {"start": 17, "end": 35}]},
        {"text": TEXT, "chunks": [{"text": "First part here."}, {"text": "Second part there."}]},
        {"chunks": [{"text": "First part here."}, {"text": "Second part there."}]},
        {"text": TEXT, "chunking": {"strategy": "custom", "chunks": [{"start": 0, "end": 16}, {"text": TEXT[17:35]}]}},
    ],
)
def test_a_caller_cuts_a_text_itself(admin: TestClient, collection: str, body: dict[str, Any]) -> None:
    path = f"/v1/collections/{collection}/documents/a"
    made = admin.put(path, json=body, headers=WAIT)
    assert made.status_code == 201, made.text
    assert made.json()["chunking"] == {"strategy": "custom"}
    listed = admin.get(f"{path}/chunks").json()["data"]
    text = admin.get(f"{path}/text").text
    assert [chunk["text"] for chunk in listed] == ["First part here.", "Second part there."]
    assert all(chunk["text"] == text[chunk["start"] : chunk["end"]] for chunk in listed)
    assert admin.patch(path, json={"title": "New"}, headers=WAIT).status_code == 200
    assert chunks_of(admin, collection, "a") == ["First part here.", "Second part there."]


def test_a_collection_may_leave_the_chunks_to_its_documents(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}"
    assert admin.patch(path, json={"chunking": {"strategy": "custom"}}).status_code == 200
    refused = admin.put(f"{path}/documents/a", json={"text": TEXT})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/chunking/chunks")
    assert admin.put(f"{path}/documents/a", json={"chunks": [{"text": "One"}]}, headers=WAIT).status_code == 201


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": TEXT, "chunking": {"size": 5, "overlap": 5}}, "/chunking/overlap"),
        ({"text": TEXT, "chunking": {"strategy": "none", "size": 5}}, "/chunking/size"),
        ({"text": TEXT, "chunking": {"sise": 5}}, "/chunking/sise"),
        ({"text": TEXT, "chunks": [{"start": 3, "end": 3}]}, "/chunks/0/end"),
        ({"text": TEXT, "chunks": [{"start": 0, "end": 9}, {"start": 8, "end": 12}]}, "/chunks/1/start"),
        ({"text": TEXT, "chunks": [{"text": "  "}]}, "/chunks/0/text"),
        ({"text": TEXT, "chunks": [{"start": 0, "end": 99}]}, "/chunking/chunks/0/end"),
        ({"text": TEXT, "chunks": [{"text": "elsewhere"}]}, "/chunking/chunks/0/text"),
        ({"text": TEXT, "chunks": [{"text": "a"}], "chunking": {"strategy": "fixed"}}, "/chunks"),
        ({"chunks": [{"start": 0, "end": 3}]}, "/text"),
    ],
)
def test_what_is_wrong_is_pointed_at(admin: TestClient, collection: str, body: dict[str, Any], pointer: str) -> None:
    refused = admin.put(f"/v1/collections/{collection}/documents/a", json=body, headers=WAIT)
    assert (refused.status_code, [error["pointer"] for error in refused.json()["errors"]]) == (422, [pointer])


def test_pointers_name_the_place_in_a_batch_in_a_form_and_in_a_query(admin: TestClient, collection: str) -> None:
    path, wrong = f"/v1/collections/{collection}/documents", {"strategy": "none", "size": 5}
    batch = admin.post(path, json={"documents": [{"id": "a", "text": TEXT, "chunking": wrong}]}).json()
    assert batch["results"][0]["error"]["errors"][0]["pointer"] == "/documents/0/chunking/size"
    form = [("files", ("a.txt", b"x")), ("info", (None, json.dumps({"chunking": wrong})))]
    assert admin.post(f"{path}/upload", files=form).json()["errors"][0]["pointer"] == "/info/chunking/size"
    raw = admin.put(f"{path}/a/original", content=b"x", params={"chunking": json.dumps(wrong)})
    assert raw.json()["errors"][0]["pointer"] == "query:chunking/size"


def test_parents_are_not_among_the_chunks_of_a_document(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "It says something. " * 20 for n in range(6))
    made = put(collection, "a", text, chunking={"strategy": "parent_child", "size": 150})
    listed = admin.get(f"/v1/collections/{collection}/documents/a/chunks", params={"limit": 200}).json()["data"]
    assert made["chunks"]["total"] == len(listed)
    assert all(len(chunk["text"]) <= 150 for chunk in listed)
    found = admin.post(f"/v1/collections/{collection}/search", json={"query": "Paragraph 4", "top_k": 50}).json()
    assert all(len(hit["text"]) <= 150 for hit in found["data"])


def test_sentences_are_joined_by_meaning(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    ships = "The ship left the harbour at dawn. The sailors raised the sails of the ship. The ship left the harbour. "
    bread = "The baker kneads the dough of bread. The dough of the bread rests. The baker bakes the bread dough. "
    made = put(collection, "a", ships * 3 + bread * 3, chunking={"strategy": "semantic", "size": 500})
    assert made["extraction"]["sentences"] == 18
    assert not any("ship" in text and "dough" in text for text in chunks_of(admin, collection, "a"))


def test_every_part_of_a_long_table_is_found_by_its_header(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    rows = "".join(f"| row {n} | {n * 7} |\n" for n in range(200))
    put(collection, "a", f"| zebraname | amount |\n|---|---|\n{rows}", format="markdown", chunking={"size": 300})
    path = f"/v1/collections/{collection}"
    text = admin.get(f"{path}/documents/a/text").text
    listed = admin.get(f"{path}/documents/a/chunks", params={"limit": 200}).json()["data"]
    assert len(listed) > 10
    assert "".join(chunk["text"] for chunk in listed).count("| row") == 200
    assert all(chunk["text"] == text[chunk["start"] : chunk["end"]] for chunk in listed)
    body = {"query": "zebraname", "mode": "keyword", "top_k": 200}
    assert len(admin.post(f"{path}/search", json=body).json()["data"]) == len(listed)


@pytest.mark.parametrize("strategy", ["auto", "recursive", "html"])
def test_a_heading_of_three_words_goes_with_what_follows(
    admin: TestClient, collection: str, put: Callable[..., Any], strategy: str
) -> None:
    text = "Parental leave rules\n\n" + ("Each parent may take many days. " * 37).strip()
    put(collection, "a", text, chunking={"strategy": strategy, "size": 1200})
    first, *rest = chunks_of(admin, collection, "a")
    assert first.startswith("Parental leave rules\n\nEach parent")
    assert rest


@pytest.mark.parametrize("strategy", ["auto", "recursive", "markdown", "fixed", "tokens", "semantic", "parent_child"])
def test_offsets_count_code_points_of_any_script(
    admin: TestClient, collection: str, put: Callable[..., Any], strategy: str
) -> None:
    parts = [
        "👩‍👩‍👧 family. ",
        "cafe\u0301 noir.\r\n",
        "שָׁלוֹם עולם. ",
        "مُحَمَّد هنا.\r\n\r\n",
        "今天讨论了部署方案。",
        "🇫🇮🇸🇪 flags! ",
    ]
    put(collection, "a", "".join(parts * 30), chunking={"strategy": strategy, "size": 60})
    path = f"/v1/collections/{collection}/documents/a"
    text = admin.get(f"{path}/text").text
    listed = admin.get(f"{path}/chunks", params={"limit": 200}).json()["data"]
    assert len(listed) > 5
    assert all(chunk["text"] == text[chunk["start"] : chunk["end"]] for chunk in listed)
    assert "\r" not in text
    assert all("👩" not in chunk["text"] or "👩‍👩‍👧" in chunk["text"] for chunk in listed)


def test_a_document_that_failed_is_tried_again_in_its_own_way(started: Callable[..., TestClient]) -> None:
    client = started(max_chunks=2)
    client.put("/v1/collections/c", json={})
    path = "/v1/collections/c/documents/a"
    body = {"text": TEXT, "chunking": {"strategy": "fixed", "size": 17}}
    for failed in (
        client.put(path, json=body, headers=WAIT),
        client.post(f"{path}/retry", headers=WAIT),
    ):
        assert (failed.status_code, failed.json()["code"]) == (422, "document_limit_exceeded")
        assert "cut by fixed" in failed.json()["detail"]
