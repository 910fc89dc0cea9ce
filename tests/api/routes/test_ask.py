from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

TEXT = (
    "# Leave\n\nEach parent may take 320 working days of parental leave. "
    "The leave must be taken before the child is eight.\n\n# Lunch\n\nThe kitchen closes at two."
)


def test_an_answer_quotes_its_sources_exactly(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "leave", TEXT, format="markdown", title="Leave policy")
    answer = admin.post(
        f"/v1/collections/{collection}/ask", json={"question": "How many days of parental leave may each parent take?"}
    )
    body = answer.json()
    assert (answer.status_code, body["answered"], body["model"]) == (200, True, "extractive")
    assert "320" in body["answer"]
    assert body["citations"]
    for citation in body["citations"]:
        text = admin.get(
            f"/v1/collections/{collection}/documents/{citation['document_id']}/text",
            params={"start": citation["start"], "end": citation["end"]},
        ).text
        assert text == citation["quote"]
        assert citation["page"] is None
        assert body["sources"][citation["marker"] - 1]["marker"] == citation["marker"]
    assert body["request_id"] == answer.headers["X-Request-ID"]


def test_without_evidence_nothing_is_made_up(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "leave", TEXT, format="markdown")
    body = admin.post(f"/v1/collections/{collection}/ask", json={"question": "Zxqv wvut mnop?"}).json()
    assert (body["answered"], body["reason"], body["citations"]) == (False, "no_evidence", [])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"question": ""}, "/question"),
        ({"question": "x" * 40_000}, "/question"),
        ({"question": "x", "search": {"query": "y"}}, "/search/query"),
        ({"question": "x", "search": {"top_k": 9999}}, "/search/top_k"),
        ({"question": "x", "search": {"cursor": "x"}}, "/search/cursor"),
        ({"question": "x", "search": {"filter": {"fild": "a"}}}, "/search/filter/fild"),
        ({"question": "x", "template": "haiku"}, "/template"),
        ({"question": "x", "answerer": "auto "}, "/answerer"),
        ({"question": "x", "messages": []}, "/messages"),
        ({"question": "x", "conversation_id": None}, "/conversation_id"),
        ({"question": "x", "temperature": 3}, "/temperature"),
        ({"question": "x", "max_tokens": 0}, "/max_tokens"),
    ],
)
def test_a_question_that_is_wrong_is_pointed_at(
    admin: TestClient, collection: str, body: dict[str, Any], pointer: str
) -> None:
    refused = admin.post(f"/v1/collections/{collection}/ask", json=body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_generating_without_a_model_says_so(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "leave", TEXT, format="markdown")
    body = {"question": "How many days of parental leave?", "answerer": "generative"}
    refused = admin.post(f"/v1/collections/{collection}/ask", json=body)
    assert (refused.status_code, refused.json()["code"]) == (503, "language_model_unavailable")


def test_a_model_is_given_the_instructions_and_its_markers_are_checked(
    started: Callable[..., TestClient], model_server: Any
) -> None:
    client = started(language_model="served", language_model_base_url=model_server.url)
    client.put("/v1/collections/c", json={"instructions": "Answer like a pirate."})
    wait = {"Prefer": "wait=30"}
    client.put("/v1/collections/c/documents/d", json={"text": TEXT, "format": "markdown"}, headers=wait)
    model_server.chat_text = "Each parent may take 320 working days [1]. Arr [9]."
    question = {"question": "How many working days of parental leave may each parent take?"}
    body = client.post("/v1/collections/c/ask", json=question).json()
    assert (body["answered"], body["invalid_citations"]) == (True, 1), body
    assert "[9]" not in body["answer"]
    assert body["citations"][0]["marker"] == 1
    assert "pirate" in str(model_server.sent[-1].body["messages"])
    client.post("/v1/collections/c/ask", json=question | {"instructions": None})
    assert "pirate" not in str(model_server.sent[-1].body["messages"])


@pytest.mark.parametrize(("status", "expected", "code"), [(401, 502, "upstream_auth"), (503, 503, None)])
def test_a_model_server_that_fails_is_an_error_without_its_words(
    started: Callable[..., TestClient], model_server: Any, status: int, expected: int, code: str | None
) -> None:
    client = started(language_model="served", language_model_base_url=model_server.url)
    client.put("/v1/collections/c", json={})
    client.put("/v1/collections/c/documents/d", json={"text": TEXT}, headers={"Prefer": "wait=30"})
    model_server.respond = lambda _: model_server.Reply(status, {"error": f"secret {model_server.url}"})
    answer = client.post("/v1/collections/c/ask", json={"question": "How many working days of parental leave?"})
    assert (answer.status_code, answer.json()["code"]) == (expected, code or "language_model_unavailable")
    assert "secret" not in answer.text
    assert model_server.url not in answer.text


GUIDE = "\n\n".join(
    (
        "# Guide",
        "## Parental leave",
        "Each parent may take 320 working days of parental leave.",
        "The form for it is called P-11, and the office keeps a copy.",
        "## Kitchen",
        "The kitchen closes at two, and its key is numbered ZX-81.",
    )
)
LEAVE = {"question": "How many working days of parental leave may each parent take?"}


@pytest.fixture
def guide(started: Callable[..., TestClient], model_server: Any) -> Callable[..., Any]:
    """Ask a collection that holds the guide in small chunks, with a model that says what it is told."""
    client = started(language_model="served", language_model_base_url=model_server.url)
    made = client.put("/v1/collections/c", json={"chunking": {"strategy": "auto", "size": 70}})
    assert made.status_code == 201, made.text
    body = {"text": GUIDE, "format": "markdown", "title": "Guide"}
    client.put("/v1/collections/c/documents/d", json=body, headers={"Prefer": "wait=30"})

    def ask(text: str, **body: Any) -> Any:
        model_server.chat_text = text
        answer = client.post("/v1/collections/c/ask", json=LEAVE | body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    ask.client = client  # type: ignore[attr-defined]
    return ask


@pytest.mark.parametrize("where", ["request", "defaults"])
@pytest.mark.parametrize(
    ("expand", "said", "heading"),
    [
        ({"neighbours": 1}, "The form for it is called P-11 [1].", "Parental leave"),
        ({"section": True}, "The form for it is called P-11 [1].", "Parental leave"),
        ({"document": True}, "The kitchen's key is numbered ZX-81 [1].", "Kitchen"),
    ],
)
def test_the_model_reads_what_the_search_expands_and_every_quote_of_it_is_exact(
    guide: Callable[..., Any], model_server: Any, where: str, expand: Any, said: str, heading: str
) -> None:
    if where == "defaults":
        guide.client.patch("/v1/collections/c", json={"defaults": {"expand": expand}})  # type: ignore[attr-defined]
    search = {"top_k": 1} | ({"expand": expand} if where == "request" else {})
    body = guide(said, search=search)
    (citation,), (source,) = body["citations"], body["sources"]
    assert source["text"] in model_server.sent[-1].body["messages"][-1]["content"]
    assert citation["verified"], body
    path = "/v1/collections/c/documents/d"
    for piece, text in (citation, citation["quote"]), (source, source["text"]):
        span = {"start": piece["start"], "end": piece["end"]}
        assert guide.client.get(f"{path}/text", params=span).text == text == GUIDE[piece["start"] : piece["end"]]  # type: ignore[attr-defined]
    chunks = {chunk["chunk_id"]: chunk for chunk in guide.client.get(f"{path}/chunks").json()["data"]}  # type: ignore[attr-defined]
    chunk = chunks[citation["chunk_id"]]
    assert chunk["start"] <= citation["start"] < chunk["end"]
    assert citation["heading_path"] == chunk["heading_path"]
    assert heading in chunk["heading_path"]
    assert source["chunk_id"] != citation["chunk_id"]


def test_without_expansion_the_model_reads_what_was_found_alone(guide: Callable[..., Any], model_server: Any) -> None:
    body = guide("Each parent may take 320 working days [1].", search={"top_k": 1})
    assert "P-11" not in model_server.sent[-1].body["messages"][-1]["content"]
    assert "P-11" not in body["sources"][0]["text"]


def test_an_expansion_stays_within_the_budget_of_the_prompt(guide: Callable[..., Any], model_server: Any) -> None:
    said = "Each parent may take 320 working days [1]."
    body = guide(said, search={"top_k": 1, "expand": {"document": True}}, max_context_tokens=110)
    assert [warning["code"] for warning in body["warnings"]] == ["context_truncated"]
    text = body["sources"][0]["text"]
    assert "320 working days" in text
    assert "ZX-81" not in text
    assert text in model_server.sent[-1].body["messages"][-1]["content"]
