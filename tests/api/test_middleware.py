import logging
import re
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient


def test_every_answer_has_an_id_of_its_own(admin: TestClient, anonymous: TestClient) -> None:
    ids = [client.get(path).headers["X-Request-ID"] for client in (admin, anonymous) for path in ("/livez", "/nowhere")]
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"req_[0-9a-f]{20}", found) for found in ids)


@pytest.mark.parametrize(("given", "is_kept"), [("abc-1.2:3", True), ("a b", False), ("x" * 129, False), ("é", False)])
def test_an_id_that_comes_with_the_request_is_kept_if_it_is_sane(
    admin: TestClient, given: str, *, is_kept: bool
) -> None:
    answer = admin.get("/livez", headers={"X-Request-ID": given.encode("latin-1")})  # type: ignore[dict-item]
    assert (answer.headers["X-Request-ID"] == given) is is_kept


def test_the_id_stands_in_the_answer_of_a_search(admin: TestClient, collection: str) -> None:
    answer = admin.post(f"/v1/collections/{collection}/search", json={"query": "x"}, headers={"X-Request-ID": "mine"})
    assert answer.json()["request_id"] == "mine"


def test_a_request_leaves_one_line_without_path_query_key_or_body(
    key_for: Callable[..., TestClient], collection: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = key_for("search", collection)
    secret = client.headers["Authorization"].partition(" ")[2]
    with caplog.at_level(logging.INFO):
        client.post(f"/v1/collections/{collection}/search", json={"query": "whispered words"})
    lines = [record for record in caplog.records if record.name == "footnote.access"]
    assert len(lines) == 1
    told = vars(lines[0])
    assert (told["method"], told["route"]) == ("POST", "/v1/collections/{collection}/search")
    assert told["status"] == 200
    assert told["ms"] > 0
    assert secret.startswith(f"fn_{told['key'].removeprefix('key_')}")
    everything = " ".join(str(vars(record)) for record in caplog.records)
    assert "whispered" not in everything
    assert secret not in everything


def test_answers_forbid_sniffing_framing_and_storing(admin: TestClient) -> None:
    headers = admin.get("/v1/collections").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
