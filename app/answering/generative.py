"""Answer with a language model that reads the sources and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answering.prompts import grounded_prompt, is_refusal, without_fences
from app.domain import Notice, Passage
from app.errors import UpstreamRejected
from app.inference.port import Completion, LanguageModel


@dataclass(frozen=True, slots=True)
class Generated:
    """What the model wrote, its markers not yet checked; `refused` where it found no answer in the sources."""

    completion: Completion
    refused: bool
    warnings: tuple[Notice, ...] = ()


def generate(
    question: str,
    sources: Sequence[Passage],
    language_model: LanguageModel,
    *,
    template: str,
    instructions: str | None,
    max_tokens: int,
    temperature: float,
) -> Generated:
    """Return the model's answer; raises what the model raises, and `UpstreamRejected` for an empty answer."""
    messages = grounded_prompt(question, sources, template=template, instructions=instructions)
    completion = language_model.complete(messages, max_tokens=max_tokens, temperature=temperature)
    was_cut = completion.finish_reason == "length"
    text = without_fences(completion.text)
    if not text:
        hint = "raise max_tokens: all of it went into reasoning" if was_cut else None
        raise UpstreamRejected("the language model answered nothing", hint=hint)
    warnings: list[Notice] = []
    if was_cut:
        warnings.append(Notice("answer_truncated", f"the answer reached max_tokens {max_tokens} and stops there"))
    if text != completion.text.strip():
        warnings.append(Notice("prompt_repeated", "the language model repeated its prompt's fences; they were removed"))
    return Generated(replace(completion, text=text), is_refusal(text), tuple(warnings))
