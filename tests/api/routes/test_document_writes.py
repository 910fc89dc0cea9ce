import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.telemetry import counters

WAIT = {"Prefer": "wait=30"}
JSON = {"Content-Type": "application/json"}


def search(client: TestClient, collection: str, query: str, mode: str = "keyword") -> list[str]:
    answer = client.post(f"/v1/collections/{collection}/search", json={"query": query, "mode": mode, "top_k": 20})
    assert answer.status_code == 200, answer.text
    return [hit["document_id"] for hit in answer.json()["data"]]


@pytest.mark.parametrize("mode", ["keyword", "dense"])
def test_every_way_in_makes_a_document_that_is_found(admin: TestClient, collection: str, mode: str) -> None:
    path = f"/v1/collections/{collection}/documents"
    puts = [
        admin.put(f"{path}/by-json", json={"text": "quokka one"}, headers=WAIT),
        admin.put(f"{path}/by-records", json={"records": [{"animal": "quokka two"}]}, headers=WAIT),
        admin.put(f"{path}/by-bytes/original", content=b"quokka three", headers=WAIT | {"Content-Type": "text/plain"}),
        admin.post(f"{path}/upload", files=[("files", ("by-upload", b"quokka four"))], headers=WAIT),
        admin.post(path, json={"documents": [{"id": "by-batch", "text": "quokka five"}]}, headers=WAIT),
    ]
    assert [put.status_code for put in puts] == [201, 201, 201, 200, 200], [put.text for put in puts]
    found = search(admin, collection, "quokka", mode)
    assert sorted(found) == ["by-batch", "by-bytes", "by-json", "by-records", "by-upload"]


def test_without_waiting_the_answer_is_the_job_and_the_bytes_are_on_the_disk(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = started()
    client.put("/v1/collections/c", json={})
    monkeypatch.setattr(type(client.app.state.services.jobs), "claim", lambda *_: None)  # type: ignore[attr-defined]
    content = b"0123456789 " * 2_000_000
    answer = client.put(
        "/v1/collections/c/documents/d/original", content=content, headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/jobs/{answer.json()['id']}"
    data: Path = client.app.state.services.settings.data  # type: ignore[attr-defined]
    (stored,) = data.glob(f"collections/*/originals/{hashlib.sha256(content).hexdigest()}")
    assert stored.stat().st_size == len(content)
    assert not list(client.app.state.services.ingestion.spool.iterdir())  # type: ignore[attr-defined]


def test_the_same_bytes_are_done_once(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents"
    first = admin.put(f"{path}/d", json={"text": "the same bytes"}, headers=WAIT)
    before = counters.snapshot()["embedding_texts"]
    for _ in range(2):
        again = admin.put(f"{path}/d", json={"text": "the same bytes"}, headers=WAIT)
        assert (again.status_code, again.json()["outcome"]) == (200, "unchanged")
        assert again.headers["ETag"] == first.headers["ETag"]
    assert counters.snapshot()["embedding_texts"] == before
    other = admin.put(f"{path}/e", json={"text": "the same bytes"}, headers=WAIT)
    assert (other.status_code, other.json()["duplicate_of"]) == (201, ["d"])


def test_a_new_version_takes_the_place_of_the_old_one(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents/d"
    admin.put(path, json={"text": "alpha"}, headers=WAIT)
    second = admin.put(path, json={"text": "beta"}, headers=WAIT)
    assert (second.status_code, second.json()["outcome"], second.json()["version"]) == (200, "updated", 2)
    assert search(admin, collection, "alpha") == []
    assert search(admin, collection, "beta") == ["d"]


@pytest.mark.parametrize("headers", [{}, WAIT], ids=["at once", "waiting"])
def test_text_of_white_space_only_is_an_error_at_once(
    admin: TestClient, collection: str, headers: dict[str, str]
) -> None:
    for text in ("", " \n\t", "\u3000\u00a0", "\u0000"):
        refused = admin.put(f"/v1/collections/{collection}/documents/d", json={"text": text}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "empty_document")
    assert admin.get(f"/v1/collections/{collection}/documents/d").status_code == 404


def test_a_job_that_fails_in_time_answers_its_own_problem(admin: TestClient, collection: str) -> None:
    refused = admin.put(
        f"/v1/collections/{collection}/documents/d/original",
        content=b"%PDF-1.4 and seventy bytes of noise",
        headers=WAIT | {"Content-Type": "application/pdf"},
    )
    problem = refused.json()
    assert (refused.status_code, problem["status"]) == (422, 422)
    assert problem["code"] in ("damaged_document", "no_extractable_text")
    assert problem["stage"] == "load"
    assert problem["detail"]
    assert problem["hint"]
    job = admin.get(refused.headers["Location"]).json()
    assert (job["state"], job["error"]["code"], job["error"]["stage"]) == ("failed", problem["code"], "load")


def test_what_no_loader_reads_is_unsupported(admin: TestClient, collection: str) -> None:
    refused = admin.put(
        f"/v1/collections/{collection}/documents/d/original",
        content=b"GIF89a" + bytes(100),
        headers=WAIT | {"Content-Type": "image/gif"},
    )
    assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type")


def test_one_bad_item_of_a_batch_fails_alone(admin: TestClient, collection: str) -> None:
    body = rb"""{"documents": [
        {"id": "clean", "text": "nothing wrong"},
        {"id": "dirty", "text": "a\u0000b \ud800 wallaby"},
        {"id": "blank", "text": " "},
        {"id": "none"},
        {"id": "a/b", "text": "x"},
        {"id": "clean", "text": "again"},
        {"text": "no id"},
        5,
        {"id": "typo", "text": "x", "titel": "y"},
        {"id": "deep", "text": "x", "metadata": {"$a": 1}}
    ]}"""
    answer = admin.post(f"/v1/collections/{collection}/documents", content=body, headers=WAIT | JSON)
    assert answer.status_code == 200
    results = json.loads(answer.content.decode("utf-8", "strict"))["results"]
    assert [(item["index"], item["status"]) for item in results] == [
        (0, 201),
        (1, 201),
        *((index, 422) for index in range(2, 10)),
    ]
    assert results[1]["warnings"][0]["code"] == "characters_removed"
    assert [item["error"]["code"] for item in results[2:]] == [
        "empty_document",
        "invalid_request",
        "invalid_request",
        "duplicate_id",
        "invalid_request",
        "invalid_request",
        "unknown_field",
        "invalid_request",
    ]
    pointers = [item["error"]["errors"][0]["pointer"] for item in results[3:]]
    assert pointers == [
        "/documents/3/text",
        "/documents/4/id",
        "/documents/5/id",
        "/documents/6/id",
        "/documents/7",
        "/documents/8/titel",
        "/documents/9/metadata/$a",
    ]
    assert search(admin, collection, "wallaby") == ["dirty"]
    assert admin.get(f"/v1/collections/{collection}/documents/dirty/text").text == "ab  wallaby"


def test_a_batch_without_waiting_names_its_jobs(admin: TestClient, collection: str) -> None:
    body = {"documents": [{"id": "a", "text": "one"}, {"id": "b", "text": " "}]}
    answer = admin.post(f"/v1/collections/{collection}/documents", json=body)
    assert answer.status_code == 202
    pending, failed = answer.json()["results"]
    assert (pending["status"], pending["outcome"]) == (202, "pending")
    assert admin.get(f"/v1/jobs/{pending['job_id']}").json()["document_id"] == "a"
    assert (failed["status"], failed["outcome"], failed["job_id"]) == (422, "failed", None)


def test_a_batch_has_a_largest_size(started: Callable[..., TestClient]) -> None:
    client = started(max_batch_documents=2)
    client.put("/v1/collections/c", json={})
    documents = [{"id": str(number), "text": "x"} for number in range(3)]
    refused = client.post("/v1/collections/c/documents", json={"documents": documents})
    assert refused.status_code == 422
    assert "FOOTNOTE_MAX_BATCH_DOCUMENTS" in refused.json()["errors"][0]["detail"]


def test_an_upload_takes_metadata_for_all_and_ids_by_name(admin: TestClient, collection: str) -> None:
    info = {"metadata": {"team": "hr"}, "ids": {"文件.txt": "wen"}}
    files = [
        ("files", ("dir/plan.md", b"# Plan\n\nfirst", "text/markdown")),
        ("files", ("文件.txt", "客户".encode("gbk") * 40, "text/plain")),
        ("files", ("other/plan.md", b"# Plan\n\nsecond", "text/markdown")),
        ("info", (None, json.dumps(info), "application/json")),
    ]
    answer = admin.post(f"/v1/collections/{collection}/documents/upload", files=files, headers=WAIT)
    results = answer.json()["results"]
    assert [(item["id"], item["status"]) for item in results] == [("plan.md", 201), ("wen", 201), ("plan.md", 422)]
    assert results[2]["error"]["code"] == "duplicate_id"
    document = admin.get(f"/v1/collections/{collection}/documents/wen").json()
    assert (document["filename"], document["metadata"]) == ("文件.txt", {"team": "hr"})


@pytest.mark.parametrize(
    ("files", "pointer", "code"),
    [
        ([("file", ("a.txt", b"x"))], "/file", "unknown_field"),
        ([("info", (None, "{}"))], "/files", "missing"),
        ([("files", (None, b"x"))], "/files/0", "invalid_form"),
        ([("files", ("a.txt", b"x")), ("info", (None, "{"))], "/info", "invalid_json"),
        ([("files", ("a.txt", b"x")), ("info", (None, '{"id":{}}'))], "/info/id", "unknown_field"),
        ([("files", ("a.txt", b"x")), ("info", (None, '{"ids":{"b.txt":"b"}}'))], "/info/ids", "unknown_file"),
        ([("files", ("a.txt", b"x")), ("info", (None, "{}")), ("info", (None, "{}"))], "/info", "invalid_form"),
    ],
)
def test_a_form_that_is_not_sound_is_refused_whole(
    admin: TestClient, collection: str, files: Any, pointer: str, code: str
) -> None:
    refused = admin.post(f"/v1/collections/{collection}/documents/upload", files=files)
    assert refused.status_code == 422, refused.text
    error = refused.json()["errors"][0]
    assert (error["pointer"], error["code"]) == (pointer, code)
    assert admin.get(f"/v1/collections/{collection}/documents").json()["data"] == []


@pytest.mark.parametrize(
    ("content_type", "content", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"x", 422),
        ("multipart/form-data; boundary=b", b"no boundary at all", 422),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n',
            422,
        ),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    admin: TestClient, collection: str, content_type: str, content: bytes, status: int
) -> None:
    refused = admin.post(
        f"/v1/collections/{collection}/documents/upload", content=content, headers={"Content-Type": content_type}
    )
    assert refused.status_code == status, refused.text


@pytest.mark.parametrize("has_length", [True, False], ids=["with a length", "without a length"])
def test_an_upload_above_the_limit_is_refused_with_the_setting_and_leaves_nothing(
    started: Callable[..., TestClient], *, has_length: bool
) -> None:
    client = started(max_upload_bytes=3_000_000)
    client.put("/v1/collections/c", json={})
    sent = 0

    def blocks() -> Any:
        nonlocal sent
        for _ in range(40):
            sent += 100_000
            yield b"x" * 100_000

    refused = client.put(
        "/v1/collections/c/documents/d/original",
        content=b"x" * 4_000_000 if has_length else blocks(),
        headers={"Content-Type": "text/plain"},
    )
    assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")
    assert "FOOTNOTE_MAX_UPLOAD_BYTES" in refused.json()["detail"]
    assert not list(client.app.state.services.ingestion.spool.iterdir())  # type: ignore[attr-defined]
    assert client.get("/v1/collections/c/documents").json()["data"] == []


def test_raw_bytes_take_everything_else_from_query_and_headers(admin: TestClient, collection: str) -> None:
    answer = admin.put(
        f"/v1/collections/{collection}/documents/d/original",
        params={"title": "Given", "metadata": '{"a":[1]}', "expires_at": "2999-01-01T00:00:00Z"},
        content=b"some words",
        headers=WAIT | {"Content-Disposition": "attachment; filename*=UTF-8''%E5%AE%A2.txt"},
    )
    document = answer.json()
    assert (document["title"], document["metadata"], document["filename"]) == ("Given", {"a": [1]}, "客.txt")
    assert document["expires_at"] == "2999-01-01T00:00:00Z"


@pytest.mark.parametrize("told", ["filename*=idna''xn--", "filename*0=a; filename*=utf-8''b"])
def test_a_file_name_that_cannot_be_read_is_no_name(admin: TestClient, collection: str, told: str) -> None:
    put = admin.put(
        f"/v1/collections/{collection}/documents/a/original",
        content=b"words",
        headers=WAIT | {"Content-Type": "text/plain", "Content-Disposition": f"attachment; {told}"},
    )
    assert (put.status_code, put.json()["filename"]) == (201, None)


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"metadata": "[]"}, "query:metadata"),
        ({"metadata": "{"}, "query:metadata"),
        ({"metadata": '{"$a":1}'}, "query:metadata/$a"),
        ({"expires_at": "tomorrow"}, "query:expires_at"),
        ({"expires_at": "2026-01-01T00:00:00"}, "query:expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "query:expires_at"),
        ({"name": "a"}, "query:name"),
    ],
)
def test_parameters_of_raw_bytes_are_checked_before_the_bytes_are_read(
    admin: TestClient, collection: str, params: dict[str, str], pointer: str
) -> None:
    def never_read() -> Any:
        pytest.fail("the body was read")
        yield b""

    refused = admin.put(
        f"/v1/collections/{collection}/documents/d/original", params=params, content=never_read(), headers=WAIT
    )
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("document_id", ["a%0Ab", "x" * 257, "%7F", "a%C2%85"])
def test_an_id_that_is_not_allowed_is_refused_by_both_puts(
    admin: TestClient, collection: str, document_id: str
) -> None:
    path = f"/v1/collections/{collection}/documents/{document_id}"
    for refused in (admin.put(path, json={"text": "x"}), admin.put(f"{path}/original", content=b"x")):
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "path:document_id"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": "x", "records": [{}]}, "/text"),
        ({"records": [{}], "format": "csv"}, "/format"),
        ({"records": []}, "/records"),
        ({"records": ["x"]}, "/records/0"),
        ({"text": 5}, "/text"),
        ({"text": "x", "format": "markdwn"}, "/format"),
        ({"text": "x", "metadata": []}, "/metadata"),
        ({"text": "x", "metadata": {"a": {"b": 2**64}}}, "/metadata/a/b"),
        ({"text": "x", "metadata": {"a": "y" * 100_000}}, "/metadata"),
        ({"text": "x", "expires_at": 1_700_000_000}, "/expires_at"),
        ({"text": "x", "content": "y"}, "/content"),
    ],
)
def test_a_document_that_is_wrong_is_pointed_at(
    admin: TestClient, collection: str, body: dict[str, Any], pointer: str
) -> None:
    refused = admin.put(f"/v1/collections/{collection}/documents/d", json=body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_an_edit_of_one_paragraph_embeds_three_chunks_at_most(
    admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    words = random.Random(7)
    paragraphs = [
        " ".join(f"{words.choice('bcdfg')}{words.randrange(10_000)}" for _ in range(words.randrange(30, 90)))
        for _ in range(640)
    ]
    first = put(collection, "d", "\n\n".join(paragraphs))
    assert first["chunks"]["total"] >= 200
    for place, edit in ((60, "longer"), (200, "shorter"), (300, "gone"), (420, "new")):
        if edit == "longer":
            paragraphs[place] += " and many words that nobody has seen before" * 5
        elif edit == "shorter":
            paragraphs[place] = paragraphs[place][:40]
        elif edit == "gone":
            del paragraphs[place]
        else:
            paragraphs.insert(place, "a paragraph that is altogether new " * 8)
        chunks = put(collection, "d", "\n\n".join(paragraphs))["chunks"]
        assert 1 <= chunks["embedded"] <= 3, (edit, chunks)
        assert chunks["total"] >= 200


def test_a_document_that_has_expired_before_it_came_is_answered_with_a_warning(
    admin: TestClient, collection: str
) -> None:
    path = f"/v1/collections/{collection}/documents/late"
    made = admin.put(path, json={"text": "words", "expires_at": "2020-01-01T00:00:00Z"}, headers=WAIT)
    assert (made.status_code, [each["code"] for each in made.json()["warnings"]]) == (201, ["already_expired"])
