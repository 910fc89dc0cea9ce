import json
import logging
import socket
from typing import Any

import pytest

from app.errors import (
    EmbeddingUnavailable,
    FootnoteError,
    LanguageModelUnavailable,
    Misconfigured,
    UpstreamAuthentication,
    UpstreamRejected,
)
from app.inference.remote import PATIENT, PROMPT, Patience, Refused

THREE = Patience(attempts=3, first_pause=1, longest_pause=8, total=100)


def ask(server: Any, patience: Patience = THREE) -> dict[str, Any]:
    return server.call(
        lambda client: client.embeddings.with_raw_response.create(model="m", input=["a"], encoding_format="float"),
        patience,
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_an_authentication_error_at_once(remote, model_server, clock, status):
    model_server.script = [model_server.Reply(status)]
    with pytest.raises(UpstreamAuthentication) as raised:
        ask(remote())
    assert (raised.value.status, raised.value.code) == (502, "upstream_auth")
    assert len(model_server.sent) == 1
    assert clock.pauses == []


def test_429_waits_as_long_as_the_server_asks(remote, model_server, clock):
    model_server.script = [model_server.Reply(429, headers={"Retry-After": "7"})]
    assert ask(remote())["data"]
    assert clock.pauses == [7.0]


def test_retry_after_may_be_a_date(remote, model_server, clock):
    clock.now = 784111770.0  # seven seconds before the date below
    model_server.script = [model_server.Reply(429, headers={"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"})]
    ask(remote())
    assert clock.pauses == [7.0]


@pytest.mark.parametrize("header", ["soon", "nan", "-5", "", "Sun, 06 Nov 1994 08:49:37 +99999999999999"])
def test_a_nonsensical_retry_after_does_not_break_the_retry(remote, model_server, clock, header):
    model_server.script = [model_server.Reply(429, headers={"Retry-After": header})]
    ask(remote())
    assert len(clock.pauses) == 1
    assert 0 <= clock.pauses[0] <= 1


def test_a_server_that_stays_busy_is_unavailable_and_its_retry_after_is_passed_on(remote, model_server, clock):
    model_server.respond = lambda sent: model_server.Reply(429, headers={"Retry-After": "11"})
    with pytest.raises(EmbeddingUnavailable) as raised:
        ask(remote())
    assert raised.value.retry_after == 11
    assert len(model_server.sent) == 3


def test_429_without_a_retry_after_still_tells_the_caller_when_to_come_back(remote, model_server, clock):
    model_server.respond = lambda sent: model_server.Reply(429)
    with pytest.raises(EmbeddingUnavailable) as raised:
        ask(remote())
    assert raised.value.retry_after == 8


def test_a_pause_that_the_caller_cannot_afford_is_not_waited_for(remote, model_server, clock):
    model_server.script = [model_server.Reply(429, headers={"Retry-After": "3600"})]
    with pytest.raises(EmbeddingUnavailable) as raised:
        ask(remote(), PROMPT)
    assert raised.value.retry_after == 3600
    assert clock.pauses == []


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_a_server_error_is_retried_with_growing_pauses(remote, model_server, clock, status):
    model_server.script = [model_server.Reply(status), model_server.Reply(status)]
    assert ask(remote())["data"]
    assert clock.pauses == [1, 2]


def test_jitter_takes_off_at_most_half_of_a_pause(remote, model_server, clock):
    model_server.script = [model_server.Reply(500), model_server.Reply(500)]
    ask(remote(jitter=lambda: 1.0))
    assert clock.pauses == [0.5, 1]


def test_attempts_end_when_the_time_is_used_up(remote, model_server, clock):
    model_server.respond = lambda sent: model_server.Reply(500)
    with pytest.raises(EmbeddingUnavailable):
        ask(remote(), Patience(attempts=50, first_pause=1, longest_pause=4, total=10))
    assert sum(clock.pauses) <= 10
    assert len(model_server.sent) == len(clock.pauses) + 1 == 4


def test_a_server_that_hangs_up_is_unavailable(remote, model_server, clock):
    model_server.respond = lambda sent: None
    with pytest.raises(EmbeddingUnavailable):
        ask(remote())
    assert len(model_server.sent) == 3


def test_nobody_listening_is_unavailable(remote, clock):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(LanguageModelUnavailable):
            ask(remote(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", unavailable=LanguageModelUnavailable))
    assert clock.pauses == [1, 2]


def test_a_server_that_never_answers_is_unavailable(remote, model_server):
    model_server.respond = lambda sent: model_server.released.wait(30) and None
    with pytest.raises(EmbeddingUnavailable):
        ask(remote(timeout_seconds=0.1), Patience(attempts=1, first_pause=1, longest_pause=1, total=1))


@pytest.mark.parametrize("body", [b"<html>not found</html>", b"", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_no_json_object_is_rejected(remote, model_server, body):
    model_server.script = [model_server.Reply(body=body)]
    with pytest.raises(UpstreamRejected, match="JSON object"):
        ask(remote())


def test_any_other_status_is_a_refusal_that_is_not_repeated(remote, model_server):
    model_server.script = [model_server.Reply(404)]
    with pytest.raises(Refused) as raised:
        ask(remote())
    assert raised.value.http_status == 404
    assert "model's name" in raised.value.hint
    assert len(model_server.sent) == 1


def test_a_refusal_keeps_only_the_names_of_parameters(remote, model_server):
    model_server.script = [model_server.Reply(400, {"error": {"message": "max_tokens of alice@example.com"}})]
    with pytest.raises(Refused) as raised:
        ask(remote())
    assert raised.value.parameters == {"max_tokens"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 503, 200])
def test_no_address_and_no_word_of_the_server_leaks(remote, model_server, clock, caplog, status):
    caplog.set_level(logging.DEBUG, logger="app")
    model_server.respond = lambda sent: model_server.Reply(status, b"LEAKED at 10.1.2.3", {"X-Leak": "LEAKED"})
    with pytest.raises(FootnoteError) as raised:
        ask(remote(base_url=model_server.url.replace("/v1", "/private/v1")))
    error = raised.value
    told = json.dumps([error.problem(), str(error), repr(error)], default=str)
    told += caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert error.__cause__ is None
    assert error.__context__ is None
    for secret in ("LEAKED", "127.0.0.1", "/private", "key-of-ours"):
        assert secret not in told


def test_a_key_is_sent_where_there_is_one(remote, model_server):
    ask(remote())
    assert model_server.sent[0].headers["authorization"] == "Bearer key-of-ours"


def test_nothing_of_the_sdks_own_environment_is_sent(remote, model_server, monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://elsewhere.invalid/not-ours")
    ask(remote(api_key=None))
    (sent,) = model_server.sent
    assert sent.headers["authorization"] == "Bearer none"
    assert "not-ours" not in str(sent.headers)


def test_an_address_without_a_scheme_is_refused_before_any_call(remote):
    with pytest.raises(Misconfigured, match="embedding server must begin with http"):
        remote(base_url="localhost:11434/v1")


def test_patience_is_bounded():
    assert PROMPT.total <= 5 < PATIENT.total <= 120
