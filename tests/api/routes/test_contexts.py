"""Contextualizers and vectors of several fields, through the API."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

SECTIONS = [f"# Part {i}\n\nThe {word} is kept in room {i}." for i, word in enumerate(["lamp", "chair", "clock"])]
TEXT = "\n\n".join(SECTIONS)
CHUNKING = {"strategy": "markdown", "size": 60}


def make(client: TestClient, name: str, **settings: Any) -> Any:
    made = client.put(f"/v1/collections/{name}", json={"chunking": CHUNKING, **settings})
    assert made.status_code in (200, 201), made.text
    return made.json()


def send(client: TestClient, collection: str, text: str, document_id: str = "d") -> Any:
    answer = client.put(
        f"/v1/collections/{collection}/documents/{document_id}",
        json={"text": text, "format": "markdown", "title": "Inventory"},
        headers={"Prefer": "wait=30"},
    )
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def find(client: TestClient, collection: str, query: str, **options: Any) -> list[Any]:
    answer = client.post(f"/v1/collections/{collection}/search", json={"query": query, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def result_of(client: TestClient, document_id: str = "d") -> Any:
    jobs = client.get("/v1/jobs", params={"limit": 1}).json()["data"]
    assert jobs[0]["document_id"] == document_id
    return jobs[0]


def prompt_tokens(client: TestClient) -> int:
    found = re.search(r"^footnote_contextualizer_prompt_tokens_total (\d+)$", client.get("/metrics").text, re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.fixture
def described(started: Callable[..., TestClient], model_server: Any) -> TestClient:
    """A service whose language model says of each passage that it is about the number in it."""

    def respond(sent: Any) -> Any:
        passage = sent.body["messages"][-1]["content"]
        number = re.search(r"room (\d+)", passage)
        return model_server.Reply(body=model_server.chat(f"Concerns depot{number[1] if number else ''} storage."))

    model_server.respond = respond
    return started(language_model="scripted", language_model_base_url=model_server.url)


def test_what_the_model_writes_is_found_and_the_clean_text_is_returned(
    described: TestClient, model_server: Any
) -> None:
    assert make(described, "c", contextualizer="llm")["warnings"] == []
    counted = prompt_tokens(described)
    document = send(described, "c", TEXT)

    hits = find(described, "c", "depot1", mode="keyword")
    assert [hit["text"].strip() for hit in hits] == [SECTIONS[1]]
    assert TEXT[hits[0]["start"] : hits[0]["end"]] == hits[0]["text"]
    assert document["warnings"] == []
    job = result_of(described)
    assert job["result"]["contexts"] == {
        "written": 3,
        "reused": 0,
        "missing": 0,
        "prompt_tokens": 21,
        "completion_tokens": 9,
        "model": "scripted",
    }
    assert "contextualize" in [stage["name"] for stage in job["stages"]]
    prefixes = {sent.body["messages"][0]["content"] for sent in model_server.sent}
    assert len(prefixes) == 1
    assert TEXT in prefixes.pop()
    assert prompt_tokens(described) - counted == 21


def test_an_edit_of_one_part_asks_for_that_part_only(described: TestClient, model_server: Any) -> None:
    make(described, "c", contextualizer="llm")
    send(described, "c", TEXT)
    model_server.sent.clear()
    send(described, "c", TEXT.replace("clock", "mirror"))
    assert len(model_server.sent) == 1
    assert result_of(described)["result"]["contexts"]["reused"] == 2
    assert find(described, "c", "depot0", mode="keyword")[0]["text"].strip() == SECTIONS[0]


def test_a_restored_version_has_its_contexts_again_and_no_model_is_asked(
    described: TestClient, model_server: Any
) -> None:
    make(described, "c", contextualizer="llm")
    send(described, "c", TEXT)
    send(described, "c", "# Part 9\n\nThe vase is kept in room 9.")
    model_server.sent.clear()
    restored = described.post(
        "/v1/collections/c/documents/d/restore", json={"version": 1}, headers={"Prefer": "wait=30"}
    )
    assert restored.status_code == 200, restored.text
    assert find(described, "c", "depot1", mode="keyword")[0]["text"].strip() == SECTIONS[1]
    assert model_server.sent == []


def test_a_failing_model_leaves_headings_with_a_warning_until_the_document_is_sent_again(
    described: TestClient, model_server: Any
) -> None:
    make(described, "c", contextualizer="llm")
    answering = model_server.respond
    model_server.respond = lambda _sent: model_server.Reply(status=401)
    document = send(described, "c", TEXT)
    assert document["state"] == "ready"
    assert [warning["code"] for warning in document["warnings"]] == ["contextualizer_unavailable"]
    assert find(described, "c", "inventory chair", mode="keyword")[0]["text"].strip() == SECTIONS[1]
    assert find(described, "c", "depot1", mode="keyword") == []

    model_server.respond = answering
    document = send(described, "c", TEXT)
    assert (document["outcome"], document["warnings"]) == ("updated", [])
    assert find(described, "c", "depot1", mode="keyword")[0]["text"].strip() == SECTIONS[1]
    assert send(described, "c", TEXT)["outcome"] == "unchanged"


def test_without_a_model_the_setting_itself_is_answered_with_a_warning(admin: TestClient, collection: str) -> None:
    changed = make(admin, collection, contextualizer="llm")
    assert [warning["code"] for warning in changed["warnings"]] == ["contextualizer_unavailable"]
    document = send(admin, collection, TEXT)
    assert [warning["code"] for warning in document["warnings"]] == ["contextualizer_unavailable"]
    assert send(admin, collection, TEXT)["outcome"] == "unchanged"


def test_with_the_contextualizer_none_titles_are_not_indexed_with_chunks(admin: TestClient, collection: str) -> None:
    send(admin, collection, TEXT)
    assert len(find(admin, collection, "inventory", mode="keyword")) == 3
    make(admin, collection, contextualizer="none")
    assert send(admin, collection, TEXT)["outcome"] == "updated"
    assert find(admin, collection, "inventory", mode="keyword") == []


def test_a_change_of_indexing_says_that_documents_keep_theirs_and_searches_find_both(
    admin: TestClient, collection: str
) -> None:
    make(admin, collection)
    send(admin, collection, TEXT, "old")
    changed = make(admin, collection, indexing="enhanced")
    (warning,) = changed["warnings"]
    assert (warning["code"], warning["documents"], warning["settings"]) == ("documents_not_reindexed", 1, ["indexing"])
    send(admin, collection, TEXT.replace("lamp", "violin"), "new")

    for mode in ("dense", "keyword", "hybrid"):
        found = {hit["document_id"] for hit in find(admin, collection, "chair in room 1", mode=mode, top_k=6)}
        assert found == {"old", "new"}, mode
    again = send(admin, collection, TEXT, "old")
    assert again["outcome"] == "updated"
    # Each chunk's clean text is embedded, and nothing that was embedded before.
    assert again["chunks"]["embedded"] <= 3
    assert send(admin, collection, TEXT, "old")["outcome"] == "unchanged"
    verified = admin.post(f"/v1/collections/{collection}/verify", headers={"Prefer": "wait=30"}).json()
    assert verified["clean"], verified


def test_parents_are_listed_apart_and_named_by_their_children(admin: TestClient, collection: str) -> None:
    admin.put(f"/v1/collections/{collection}", json={"chunking": {"strategy": "parent_child", "size": 40}})
    send(admin, collection, TEXT)
    listed = f"/v1/collections/{collection}/documents/d/chunks"
    children, parents = (admin.get(listed, params={"kind": kind}).json()["data"] for kind in ("child", "parent"))
    assert admin.get(listed).json()["data"] == children
    assert {parent["kind"] for parent in parents} == {"parent"}
    by_id = {parent["chunk_id"]: parent for parent in parents}
    for child in children:
        parent = by_id[child["parent_id"]]
        assert parent["start"] <= child["start"] < child["end"] <= parent["end"]
        assert TEXT[child["start"] : child["end"]] == child["text"]
        assert child["context"].startswith("Inventory")
    assert admin.get(f"/v1/collections/{collection}/stats").json()["chunks"] == len(children)
    assert admin.get(listed, params={"kind": "cousin"}).status_code == 422
