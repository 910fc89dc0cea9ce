"""The context never goes over the model's window, and says when it was cut."""

import pytest

from app.answering.context import FENCE_TOKENS, context_budget, fit_sources
from app.answering.prompts import grounded_prompt
from app.errors import InvalidRequest
from app.inference.token_counter import estimate_tokens

LONG = " ".join(f"Sentence number {number} says little." for number in range(200))


def test_sources_that_fit_stay_as_they_are(make_passage) -> None:
    sources = [make_passage("Leave is long."), make_passage("Tea is free.")]
    fitted = fit_sources(sources, 1000)
    assert (list(fitted.sources), fitted.warnings) == (sources, ())


def test_the_last_source_is_cut_at_a_sentence_and_the_answer_says_so(make_passage) -> None:
    sources = [make_passage("Leave is long.", "a"), make_passage(LONG, "b", start=10), make_passage("Tea.", "c")]
    fitted = fit_sources(sources, 500)
    first, cut = fitted.sources
    assert first == sources[0]
    assert LONG.startswith(cut.text)
    assert cut.text.endswith("says little.")
    assert (cut.start, cut.end) == (10, 10 + len(cut.text))
    [warning] = fitted.warnings
    assert (warning.code, warning.extra) == ("context_truncated", {"passages": 2, "left_out": 1})
    assert sum(estimate_tokens(source.text) + FENCE_TOKENS for source in fitted.sources) <= 500


@pytest.mark.parametrize(("window", "wanted", "max_tokens"), [(4096, 8000, 512), (1500, 3000, 400), (2000, 100, 64)])
def test_prompt_and_answer_stay_within_the_window(make_passage, scripted, window, wanted, max_tokens) -> None:
    sources = [make_passage(LONG, str(number), title=f"Document {number}") for number in range(20)]
    model = scripted(context_tokens=window)
    budget = context_budget("How long?", model, max_context_tokens=wanted, max_tokens=max_tokens, instructions=None)
    fitted = fit_sources(sources, budget)
    prompt = grounded_prompt("How long?", fitted.sources)
    assert fitted.warnings
    assert sum(estimate_tokens(message.content) for message in prompt) + max_tokens <= window
    assert sum(estimate_tokens(source.text) for source in fitted.sources) <= wanted


def test_a_request_that_leaves_no_room_is_refused_with_the_setting(scripted) -> None:
    with pytest.raises(InvalidRequest) as caught:
        context_budget("Q?", scripted(context_tokens=600), max_context_tokens=99, max_tokens=512, instructions=None)
    assert caught.value.errors[0].pointer == "/max_tokens"
    assert "FOOTNOTE_LANGUAGE_MODEL_CONTEXT_TOKENS" in caught.value.detail


def test_a_budget_below_one_sentence_is_refused(make_passage) -> None:
    with pytest.raises(InvalidRequest) as caught:
        fit_sources([make_passage(LONG)], 64)
    assert caught.value.errors[0].pointer == "/max_context_tokens"
