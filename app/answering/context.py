"""Fit the sources into what a language model may read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answering.prompts import grounded_prompt
from app.answering.sentences import split_sentences
from app.answering.surroundings import give_contexts
from app.domain import Notice, Passage
from app.errors import FieldError, InvalidRequest
from app.inference.port import LanguageModel
from app.inference.token_counter import estimate_tokens

FENCE_TOKENS = 60
"""What the fences around a source cost at most: two lines with a random number."""

LEAST_CONTEXT_TOKENS = 64
"""Less room than this for sources is an error of the request, not a short context."""


@dataclass(frozen=True, slots=True)
class FittedSources:
    """The first of the sources, the last of them cut at a sentence's end where it did not fit whole.

    Where all fit, they stand in as much of their contexts as fits too.
    """

    sources: tuple[Passage, ...]
    warnings: tuple[Notice, ...] = ()


def context_budget(
    question: str, language_model: LanguageModel, *, max_context_tokens: int, max_tokens: int, instructions: str | None
) -> int:
    """Return how many estimated tokens the sources may take beside the rules, the question and the answer.

    Raises `InvalidRequest` where these leave no room in the model's window.
    """
    fixed = sum(
        estimate_tokens(message.content) for message in grounded_prompt(question, (), instructions=instructions)
    )
    room = language_model.context_tokens - max_tokens - fixed
    if room < LEAST_CONTEXT_TOKENS:
        detail = (
            f"max_tokens {max_tokens} and about {fixed} tokens of question and instructions leave no room for sources "
            f"in the model's window of {language_model.context_tokens} tokens (FOOTNOTE_LANGUAGE_MODEL_CONTEXT_TOKENS)"
        )
        raise InvalidRequest(detail, errors=[FieldError("/max_tokens", "too_large", detail)])
    return min(room, max_context_tokens)


def fit_sources(sources: Sequence[Passage], budget_tokens: int) -> FittedSources:
    """Return the sources that fit into the budget, in their order, with a warning where some do not.

    What was found comes before what stands around it. Raises `InvalidRequest` where not one sentence of the first
    source fits.
    """
    in_contexts = fit_contexts(sources, budget_tokens)
    if sum(map(_tokens, in_contexts.sources)) <= budget_tokens:
        return in_contexts
    fitted: list[Passage] = []
    for source in sources:
        if _tokens(source) > budget_tokens:
            if shortened := _shortened(source, budget_tokens - _tokens(replace(source, text=""))):
                fitted.append(shortened)
            break
        fitted.append(source)
        budget_tokens -= _tokens(source)
    if not fitted:
        detail = "max_context_tokens leaves no room for one sentence of the best passage; give more"
        raise InvalidRequest(detail, errors=[FieldError("/max_context_tokens", "too_small", detail)])
    detail = f"{len(fitted)} of {len(sources)} passages fit into the context, the last of them may be cut"
    extra = {"passages": len(fitted), "left_out": len(sources) - len(fitted)}
    return FittedSources(tuple(fitted), (Notice("context_truncated", detail, extra),))


def fit_contexts(sources: Sequence[Passage], budget_tokens: int) -> FittedSources:
    """Return all of the sources, with as much of their contexts as the budget holds beside them."""
    given, is_cut = give_contexts(sources, budget_tokens - sum(map(_tokens, sources)), _tokens)
    if not is_cut:
        return FittedSources(given)
    detail = "what stands around the passages does not fit into the context as a whole; max_context_tokens holds more"
    return FittedSources(given, (Notice("context_truncated", detail, {"passages": len(given), "left_out": 0}),))


def _tokens(source: Passage) -> int:
    """Return what a source takes of a prompt at most: its fences, its heading and its text."""
    head = " ".join((source.title, *source.heading_path))
    return FENCE_TOKENS + estimate_tokens(head) + estimate_tokens(source.text)


def _shortened(source: Passage, budget_tokens: int) -> Passage | None:
    end = 0
    for sentence in split_sentences(source.text):
        if estimate_tokens(source.text[: sentence.end]) > budget_tokens:
            break
        end = sentence.end
    return replace(source, text=source.text[:end], end=source.start + end) if end else None
