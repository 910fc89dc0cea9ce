import time

import pytest

from app.errors import LanguageModelUnavailable, UpstreamAuthentication, UpstreamRejected
from app.inference.language_models.openai_compatible import OpenAICompatibleLanguageModel
from app.inference.port import Completion, Message

ASKED = [Message("system", "Be brief."), Message("user", "Why?")]


@pytest.fixture
def model(remote):
    return OpenAICompatibleLanguageModel(
        remote(unavailable=LanguageModelUnavailable), model="small", context_tokens=4096
    )


def complete(model):
    return model.complete(ASKED, max_tokens=50, temperature=0.1)


def test_only_widely_supported_parameters_are_sent(model, model_server):
    complete(model)
    (sent,) = model_server.sent
    assert sent.path == "/v1/chat/completions"
    assert sent.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "max_tokens": 50,
        "temperature": 0.1,
    }


def test_a_completion_carries_text_model_usage_and_finish_reason(model):
    assert complete(model) == Completion("The answer.", "served-name", 7, 3, "stop")


def test_usage_and_names_that_a_server_leaves_out_are_no_error(model, model_server):
    model_server.script = [model_server.Reply(body={"choices": [{"message": {"content": "x"}}], "usage": None})]
    assert complete(model) == Completion("x", "small", 0, 0, None)


@pytest.mark.parametrize(
    "content",
    [
        "<think>why, indeed</think>x",
        "\n<think>\nwhy\n</think>\n\nx\n",
        "<think></think>x",
        "why, indeed</think>x",
        "x",
    ],
)
def test_reasoning_is_no_part_of_the_answer(model, model_server, content):
    model_server.chat_text = content
    assert complete(model).text == "x"


def test_reasoning_in_a_field_of_its_own_is_ignored(model, model_server):
    body = model_server.chat("x", reasoning_content="why", reasoning="why")
    model_server.script = [model_server.Reply(body=body)]
    assert complete(model).text == "x"


def test_a_tag_that_the_answer_speaks_of_stays(model, model_server):
    model_server.chat_text = "Write <think> and </think> around it."
    assert complete(model).text == "Write <think> and </think> around it."


@pytest.mark.parametrize("content", [None, "", "  \n", "<think>never ended", "<think>all</think>", 7])
def test_an_answer_without_text_is_rejected(model, model_server, content):
    model_server.script = [model_server.Reply(body=model_server.chat(content))]
    with pytest.raises(UpstreamRejected, match="no text"):
        complete(model)


def test_an_answer_far_beyond_what_was_asked_for_is_rejected(model, model_server):
    model_server.chat_text = "a [1] " * 1000
    with pytest.raises(UpstreamRejected, match="50 tokens"):
        complete(model)


def test_what_no_text_can_hold_leaves_the_answer(model, model_server):
    body = model_server.chat("one\ud800 two\0 three") | {"model": "na\udfffme"}
    model_server.script = [model_server.Reply(body=body)]
    completion = complete(model)
    assert (completion.text, completion.model) == ("one two three", "name")


def test_reasoning_that_used_up_the_limit_is_told_as_such(model, model_server):
    body = model_server.chat("<think>very long", finish_reason="length")
    model_server.script = [model_server.Reply(body=body)]
    with pytest.raises(UpstreamRejected) as raised:
        complete(model)
    assert "max_tokens" in raised.value.hint


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"choices": ["x"]}, {"choices": [{}]}])
def test_an_answer_of_another_shape_is_rejected(model, model_server, body):
    model_server.script = [model_server.Reply(body=body)]
    with pytest.raises(UpstreamRejected):
        complete(model)


def refusal(model_server, message):
    return model_server.Reply(400, {"error": {"message": message, "type": "invalid_request_error"}})


def test_a_server_that_refuses_max_tokens_is_asked_with_max_completion_tokens_from_then_on(model, model_server):
    model_server.script = [
        refusal(model_server, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    ]
    complete(model)
    complete(model)
    limits = [sent.body.keys() & {"max_tokens", "max_completion_tokens"} for sent in model_server.sent]
    assert limits == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


def test_a_server_that_refuses_any_temperature_is_asked_without_one(model, model_server):
    model_server.script = [
        refusal(model_server, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refusal(model_server, "'temperature' does not support 0.1 with this model."),
    ]
    complete(model)
    assert model_server.sent[-1].body.keys() == {"model", "messages", "max_completion_tokens"}


def test_another_name_is_not_kept_when_it_is_refused_too(model, model_server):
    model_server.script = [refusal(model_server, "max_tokens is too large")] * 2
    with pytest.raises(UpstreamRejected):
        complete(model)
    complete(model)
    assert "max_tokens" in model_server.sent[-1].body


def test_any_other_refusal_is_told_after_one_attempt(model, model_server):
    model_server.script = [refusal(model_server, "no such model")]
    with pytest.raises(UpstreamRejected):
        complete(model)
    assert len(model_server.sent) == 1


def test_a_busy_server_is_unavailable_with_its_retry_after(model, model_server):
    model_server.respond = lambda sent: model_server.Reply(429, headers={"Retry-After": "30"})
    with pytest.raises(LanguageModelUnavailable) as raised:
        complete(model)
    assert raised.value.retry_after == 30


@pytest.mark.parametrize("status", [500, 503])
def test_a_broken_server_is_unavailable(model, model_server, status):
    model_server.respond = lambda sent: model_server.Reply(status)
    with pytest.raises(LanguageModelUnavailable):
        complete(model)


def test_a_refused_key_is_an_authentication_error(model, model_server):
    model_server.script = [model_server.Reply(401)]
    with pytest.raises(UpstreamAuthentication):
        complete(model)


def test_its_name_and_window_are_the_configured_ones(model, model_server):
    assert (model.name, model.context_tokens) == ("small", 4096)
    assert model_server.sent == []


def test_only_work_in_the_background_waits_as_long_as_a_busy_server_asks(model, model_server, clock):
    busy = model_server.Reply(status=429, headers={"Retry-After": "40"})
    model_server.script = [busy]
    with pytest.raises(LanguageModelUnavailable):
        complete(model)
    model_server.script = [busy]
    answer = model.complete([Message("user", "?")], max_tokens=16, temperature=0, patient=True)
    assert (answer.text, clock.pauses) == ("The answer.", [40.0])


def test_a_caller_s_own_limit_ends_an_attempt_and_the_attempts(model, model_server, clock):
    model_server.respond = lambda _: model_server.released.wait(30) and None
    clock_before, began = clock.now, time.monotonic()
    with pytest.raises(LanguageModelUnavailable):
        model.complete(ASKED, max_tokens=5, temperature=0, timeout_seconds=0.2)
    assert time.monotonic() - began < 20
    assert clock.now - clock_before < 0.25
