import json
import logging
import socket
import time
from typing import Any

import pytest

from app.errors import FootnoteError, Misconfigured, RerankUnavailable, UpstreamAuthentication, UpstreamRejected
from app.inference.rerankers.http import HttpReranker

TEXTS = ["alpha", "beta"]


def reranker(url: str, **options: Any) -> HttpReranker:
    return HttpReranker(**{"base_url": url, "api_key": "key-of-ours", "model": "m", "window_tokens": 512, **options})


def ask(url: str, texts: list[str] = TEXTS, seconds: float = 10, **options: Any) -> list[float]:
    made = reranker(url, **options)
    try:
        return made.scores("query", texts, timeout_seconds=seconds).tolist()
    finally:
        made.close()


ONE, HALF = {"index": 1, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.5}

ANSWERS = {
    "cohere v2": ("/v2", {"id": "x", "results": [ONE, HALF], "meta": {}}),
    "jina": ("/v1", {"model": "m", "results": [{**ONE, "document": {"text": "beta"}}, HALF], "usage": {}}),
    "voyage": ("/v1", {"object": "list", "data": [ONE, HALF], "model": "m", "usage": {}}),
    "vllm": ("/v1", {"id": "x", "model": "m", "usage": {}, "results": [HALF, ONE]}),
    "llama.cpp": ("/v1", {"model": "m", "object": "list", "results": [HALF, ONE]}),
    "tei": ("", [{"index": 1, "score": 1.0}, {"index": 0, "score": 0.5}]),
}


@pytest.mark.parametrize("server", ANSWERS)
def test_each_server_is_spoken_to_in_its_own_shape(model_server, server):
    path, answer = ANSWERS[server]
    model_server.script = [model_server.Reply(body=answer)]
    assert ask(model_server.url.replace("/v1", path)) == [0.5, 1.0]
    (sent,) = model_server.sent
    assert sent.path == f"{path}/rerank"
    assert sent.body == {"query": "query", "model": "m", "texts" if server == "tei" else "documents": TEXTS}
    assert sent.headers["authorization"] == "Bearer key-of-ours"


@pytest.mark.parametrize("base", ["{}/v1/", "{}/v1/rerank", "{}/v1/rerank/"])
def test_the_base_url_may_name_the_whole_path(judge, base):
    ask(base.format(judge.url.removesuffix("/v1")))
    assert judge.sent[0].path == "/v1/rerank"


def test_without_key_and_model_none_is_sent(judge):
    ask(judge.url, api_key=None, model=None)
    assert "authorization" not in judge.sent[0].headers
    assert "model" not in judge.sent[0].body


def test_what_one_request_cannot_hold_goes_in_several(judge):
    texts = [f"text {number} qu" if number == 33 else f"text {number}" for number in range(70)]
    scores = ask(judge.url.removesuffix("/v1"), texts)
    assert [len(sent.body["texts"]) for sent in judge.sent] == [32, 32, 6]
    assert max(range(70), key=scores.__getitem__) == 33


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_an_authentication_error(model_server, status):
    model_server.script = [model_server.Reply(status)]
    with pytest.raises(UpstreamAuthentication) as raised:
        ask(model_server.url)
    assert (raised.value.status, raised.value.code) == (502, "upstream_auth")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_a_busy_or_broken_server_is_unavailable_and_asked_once(model_server, status):
    model_server.respond = lambda _: model_server.Reply(status)
    with pytest.raises(RerankUnavailable):
        ask(model_server.url)
    assert len(model_server.sent) == 1


@pytest.mark.parametrize("status", [302, 400, 404, 413, 422])
def test_any_other_status_is_a_refusal(model_server, status):
    model_server.script = [model_server.Reply(status)]
    with pytest.raises(UpstreamRejected, match=str(status)):
        ask(model_server.url)


def scored(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in pairs]}


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[" * 100_000,
        b"\xff",
        b"",
        {},
        [],
        "text",
        7,
        None,
        {"results": None},
        {"results": [1, 2]},
        {"results": [{"index": 0}, {"index": 1}]},
        scored((0, 0.5)),
        scored((0, 0.5), (0, 0.6)),
        scored((0, 0.5), (1, 0.5), (1, 0.7)),
        scored((0, 0.5), (2, 0.6)),
        scored((-1, 0.5), (0, 0.6)),
        scored(("0", 0.5), ("1", 0.6)),
        scored((0.5, 0.5), (1, 0.6)),
        scored((True, 0.5), (0, 0.6)),
        scored((0, "0.5"), (1, "0.6")),
        scored((0, None), (1, 0.6)),
        scored((0, True), (1, 0.6)),
        scored((0, 10**400), (1, 0.6)),
        scored((0, float("nan")), (1, 0.6)),
        scored((0, float("inf")), (1, 0.6)),
    ],
)
def test_nonsense_is_rejected(model_server, answer):
    body = b"null" if answer is None else answer
    model_server.script = [model_server.Reply(body=body)]
    with pytest.raises(UpstreamRejected):
        ask(model_server.url)


def test_an_answer_without_end_is_rejected(model_server):
    model_server.script = [model_server.Reply(body=b" " * 32_000_001)]
    with pytest.raises(UpstreamRejected, match="longer than"):
        ask(model_server.url)


def test_a_server_that_hangs_is_late(model_server):
    model_server.respond = lambda _: model_server.released.wait(30) and None
    began = time.monotonic()
    with pytest.raises(RerankUnavailable, match=r"longer than 0\.2 s"):
        ask(model_server.url, seconds=0.2)
    assert time.monotonic() - began < 20


def test_a_server_that_answers_drop_by_drop_is_late(model_server):
    """Each read is in time, the whole is not: the head promises more than ever comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        import threading

        stop = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        with pytest.raises(RerankUnavailable):
            ask(f"http://127.0.0.1:{server.getsockname()[1]}/v1", seconds=0.3)
        assert time.monotonic() - began < 20
        stop.set()
        thread.join()


def test_a_server_that_hangs_up_or_is_not_there_is_unavailable(model_server):
    model_server.respond = lambda _: None
    with pytest.raises(RerankUnavailable):
        ask(model_server.url)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(RerankUnavailable):
            ask(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")


@pytest.mark.parametrize("status", [200, 302, 400, 401, 429, 500])
def test_no_address_and_no_word_of_the_server_leaks(model_server, caplog, status):
    caplog.set_level(logging.DEBUG, logger="app")
    model_server.respond = lambda _: model_server.Reply(status, b"LEAKED at 10.1.2.3", {"Location": "/LEAKED"})
    with pytest.raises(FootnoteError) as raised:
        ask(model_server.url.replace("/v1", "/private/v1"))
    error = raised.value
    assert error.__cause__ is None
    assert error.__context__ is None
    told = json.dumps([error.problem(), str(error)]) + caplog.text
    for secret in ("LEAKED", "127.0.0.1", "/private", "key-of-ours"):
        assert secret not in told


def test_a_url_without_a_scheme_is_refused_before_any_call():
    with pytest.raises(Misconfigured, match="FOOTNOTE_RERANK_BASE_URL"):
        reranker("localhost:8080")
