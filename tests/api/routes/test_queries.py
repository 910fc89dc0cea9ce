"""The query log at the door: what it tells, to whom, and what it never holds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings

TEXT = "Each parent may take 320 working days of leave until the child is eight."


@pytest.fixture
def library(collection: str, put: Callable[..., Any]) -> str:
    for number in range(12):
        put(collection, f"note-{number}", f"{TEXT} Note {number}.")
    return collection


def log_of(client: TestClient, collection: str, **params: Any) -> list[dict[str, Any]]:
    answer = client.get(f"/v1/collections/{collection}/queries", params=params)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


def search(client: TestClient, collection: str, query: str = "parental leave", **body: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/collections/{collection}/search", json={"query": query, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_search_is_kept_with_its_first_hits_and_none_of_their_texts(
    admin: TestClient, library: str, key_for: Callable[..., TestClient]
) -> None:
    owner = key_for("owner", library)
    before = datetime.now(UTC)
    messages = [{"role": "user", "content": "quagmire said before"}]
    found = search(owner, library, top_k=11, fuzzy=False, messages=messages)
    [entry] = log_of(owner, library)
    assert entry["id"].startswith("qry_")
    assert before <= datetime.fromisoformat(entry["created_at"]) <= datetime.now(UTC)
    assert (entry["operation"], entry["query"], entry["mode"]) == ("search", "parental leave", "hybrid")
    assert entry["query_characters"] == len("parental leave")
    assert entry["options"] == {"top_k": 11, "fuzzy": False}
    assert (entry["hit_count"], entry["degraded"]) == (11, [])
    assert entry["warnings"] == [warning["code"] for warning in found["warnings"]]
    assert entry["request_id"] == found["request_id"]
    assert 0 < entry["total_ms"] <= found["timings_ms"]["total"] + 0.01
    assert entry["hits"] == [
        {name: hit[name] for name in ("rank", "chunk_id", "document_id", "score")} for hit in found["data"][:10]
    ]
    assert entry["key_id"] in {key["id"] for key in admin.get("/v1/keys", params={"limit": 200}).json()["data"]}
    told = owner.get(f"/v1/collections/{library}/queries").text
    assert "working days" not in told
    assert "quagmire" not in told


def test_a_question_is_kept_with_what_its_answer_could_use(admin: TestClient, library: str) -> None:
    body = {"question": "How many working days of leave?", "search": {"top_k": 3}, "abstain": False}
    answer = admin.post(f"/v1/collections/{library}/ask", json=body).json()
    [entry] = log_of(admin, library)
    assert (entry["operation"], entry["query"], entry["key_id"]) == ("ask", body["question"], None)
    assert entry["options"] == {"search": {"top_k": 3}, "abstain": False}
    assert [hit["chunk_id"] for hit in entry["hits"]] == [source["chunk_id"] for source in answer["sources"]]
    assert (entry["hit_count"], entry["total_ms"]) == (3, answer["timings_ms"]["total"])
    assert entry["request_id"] == answer["request_id"]


def test_a_search_of_several_leaves_in_each_log_only_what_is_of_that_collection(
    admin: TestClient, library: str, put: Callable[..., Any]
) -> None:
    other = f"{library}-other"
    admin.put(f"/v1/collections/{other}", json={})
    put(other, "else", TEXT)
    body = {"query": "parental leave", "collections": [library, other], "top_k": 2}
    assert admin.post("/v1/search", json=body).status_code == 200
    for name, hits in ((library, 2), (other, 1)):
        [entry] = log_of(admin, name)
        assert (entry["operation"], entry["options"], entry["hit_count"]) == ("search_several", {"top_k": 2}, hits)
        assert all(hit["document_id"].startswith("note-") is (name == library) for hit in entry["hits"])


def test_queries_of_search_keys_are_kept_only_where_the_collection_says_so(
    admin: TestClient, library: str, key_for: Callable[..., TestClient]
) -> None:
    path, searcher = f"/v1/collections/{library}", key_for("search", library)
    assert admin.get(path).json()["query_log"] == {"enabled": True, "search_keys": False}
    search(searcher, library, "first")
    assert admin.patch(path, json={"query_log": {"search_keys": True}}).json()["query_log"]["enabled"] is True
    search(searcher, library, "second")
    assert admin.patch(path, json={"query_log": {"enabled": False}}).status_code == 200
    search(admin, library, "third")
    assert [entry["query"] for entry in log_of(admin, library)] == ["second"]
    wrong = admin.patch(path, json={"query_log": {"search_key": True}})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/query_log/search_key")


def test_only_who_may_write_and_sees_all_reads_the_log_and_only_an_owner_clears_it(
    admin: TestClient, library: str, key_for: Callable[..., TestClient]
) -> None:
    path = f"/v1/collections/{library}/queries"
    search(admin, library)
    every = {"field": "$document_id", "op": "exists", "value": True}
    for reader in (key_for("ask", library), key_for("ingest", library, filter=every)):
        refused = reader.get(path)
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    writer = key_for("ingest", library)
    assert len(log_of(writer, library)) == 1
    assert writer.delete(path).status_code == 403
    assert key_for("owner", library, filter=every).delete(path).status_code == 403
    assert key_for("owner", library).delete(path).status_code == 204
    assert log_of(admin, library) == []


def test_pages_meet_and_a_list_can_be_narrowed(admin: TestClient, library: str) -> None:
    path = f"/v1/collections/{library}/queries"
    for query in ("one", "two", "three"):
        search(admin, library, query)
    admin.post(f"/v1/collections/{library}/ask", json={"question": "four"})
    first = admin.get(path, params={"limit": 3}).json()
    assert [entry["query"] for entry in first["data"]] == ["four", "three", "two"]
    assert first["has_more"] is True
    rest = admin.get(path, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert ([entry["query"] for entry in rest["data"]], rest["has_more"]) == (["one"], False)
    assert [entry["query"] for entry in log_of(admin, library, operation="ask")] == ["four"]
    since = first["data"][1]["created_at"]
    assert [entry["query"] for entry in log_of(admin, library, since=since)] == ["four", "three"]
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    assert log_of(admin, library, since=later) == []


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"since": "yesterday"}, "query:since"),
        ({"operation": "find"}, "query:operation"),
        ({"cursor": "x"}, None),
        ({"limit": 0}, "query:limit"),
        ({"sinc": "x"}, "query:sinc"),
    ],
)
def test_a_wrong_parameter_is_named(
    admin: TestClient, collection: str, params: dict[str, Any], pointer: str | None
) -> None:
    wrong = admin.get(f"/v1/collections/{collection}/queries", params=params)
    assert wrong.status_code == 422, wrong.text
    if pointer is not None:
        assert wrong.json()["errors"][0]["pointer"] == pointer


def test_any_text_can_be_kept(admin: TestClient, library: str) -> None:
    content = b'{"query": "leave \\u0000", "filter": {"field": "a\\u0000", "op": "eq", "value": "\\uffff"}}'
    path = f"/v1/collections/{library}"
    headers = {"Content-Type": "application/json"}
    assert admin.post(f"{path}/search", content=content, headers=headers).status_code == 200
    search(admin, library, "x" * 32_000, document_ids=[f"document-{number}" for number in range(2000)], top_k=3)
    long, odd = log_of(admin, library)
    assert (len(long["query"]), long["query_characters"]) == (1000, 32_000)
    assert long["options"] == {"document_ids": "…", "top_k": 3}
    assert odd["query"] == "leave \u0000"
    assert odd["options"]["filter"]["field"] == "a\u0000"


def test_the_log_outlives_the_service_and_keeps_the_last(tmp_path: Path) -> None:
    key = "query-log-tests-admin-key"
    settings = Settings(data=tmp_path, embedder="hashed", admin_key=SecretStr(key), query_log_entries=2)

    def client() -> TestClient:
        return TestClient(create_app(settings), headers={"Authorization": f"Bearer {key}"})

    with client() as first:
        first.put("/v1/collections/c", json={})
        for query in ("one", "two", "three"):
            search(first, "c", query)
    with client() as again:
        assert [entry["query"] for entry in log_of(again, "c")] == ["three", "two"]
