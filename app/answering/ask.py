"""Answer a question with citations: search, weigh the evidence, generate or extract, check the citations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.answering.citations import check_citations
from app.answering.context import context_budget, fit_contexts, fit_sources
from app.answering.evidence import Evidence
from app.answering.extractive import Ranking, extract, rank_sentences
from app.answering.generative import generate
from app.answering.prompts import refusal
from app.answering.sentences import script
from app.answering.surroundings import FindChunk, placed
from app.domain import Answer, Citation, Notice, Passage
from app.errors import LanguageModelUnavailable
from app.indexes.analysis import Analyzer
from app.inference.port import Completion, Embedder, LanguageModel
from app.retrieval.planning import clean_query
from app.retrieval.search import SearchResult
from app.telemetry import StageTimer, counters

ENOUGH_TO_EXTRACT = 1.1
"""The least strength of a sentence that is given as an answer; decision 0007 has the table."""

ENOUGH_ACROSS_SCRIPTS = 0.9
"""The same where question and sentence are of different scripts: they share no words, and meaning alone decides."""

ENOUGH_TO_GENERATE = 0.7
"""The least strength for which the model is asked: lower, because the model can refuse by itself."""

EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How to answer. `auto` generates where there is a language model and extracts where there is none."""

    answerer: Literal["auto", "generative", "extractive"] = "auto"
    abstain: bool = True
    max_context_tokens: int = 3000
    max_tokens: int = 512
    temperature: float = 0.1
    instructions: str | None = None
    template: Literal["qa"] = "qa"


def ask(
    question: str,
    *,
    search: Callable[[str], SearchResult],
    language_model: LanguageModel | None,
    embedder: Embedder,
    analyzer: Analyzer,
    options: AskOptions,
    find_chunk: FindChunk | None = None,
) -> Answer:
    """Return an answer whose every citation is an exact piece of a source, or say that there is no evidence.

    Passages are read in the context that the search gives them; `find_chunk` tells where in it a quote stands.
    Without evidence no model is called. A model that fails is an error (502, 503), never an extractive answer
    instead: the caller would not know which of the two it reads. Raises `LanguageModelUnavailable` for
    `generative` without a model, and what `search` raises.
    """
    counters.add("asks")
    question = clean_query(question)
    timer = StageTimer()
    model = _chosen_model(options, language_model)
    with timer.stage("search"):
        found = search(question)
    read = fit_contexts(found.passages, options.max_context_tokens)
    evidence = Evidence(read.sources, analyzer, embedder)
    with timer.stage("evidence"):
        weighed = model is None or options.abstain
        ranking = rank_sentences(question, evidence, found.term_weights) if weighed else Ranking(())
    outcome = _outcome(question, found.passages, evidence, ranking, model, options, timer)
    completion = outcome.completion
    return Answer(
        text=outcome.text,
        answered=outcome.answered,
        reason=None if outcome.answered else "no_evidence",
        citations=tuple(placed(each, outcome.sources[each.marker - 1], find_chunk) for each in outcome.citations),
        invalid_citations=outcome.invalid_citations,
        sources=outcome.sources,
        standalone_question=question,
        model=model.name if model else EXTRACTIVE,
        prompt_tokens=completion.prompt_tokens if completion else 0,
        completion_tokens=completion.completion_tokens if completion else 0,
        warnings=(*found.warnings, *(() if completion else read.warnings), *ranking.warnings, *outcome.warnings),
        timings_ms=timer.milliseconds(),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    text: str
    answered: bool
    sources: tuple[Passage, ...]
    citations: tuple[Citation, ...] = ()
    invalid_citations: int = 0
    completion: Completion | None = None
    warnings: tuple[Notice, ...] = ()


def _chosen_model(options: AskOptions, language_model: LanguageModel | None) -> LanguageModel | None:
    if options.answerer == "generative" and language_model is None:
        raise LanguageModelUnavailable(
            "no language model is configured, so no answer can be generated",
            hint="set FOOTNOTE_LANGUAGE_MODEL and FOOTNOTE_LANGUAGE_MODEL_BASE_URL, or ask with answerer extractive",
        )
    return None if options.answerer == "extractive" else language_model


def _outcome(
    question: str,
    found: Sequence[Passage],
    evidence: Evidence,
    ranking: Ranking,
    model: LanguageModel | None,
    options: AskOptions,
    timer: StageTimer,
) -> _Outcome:
    if not _is_enough(question, evidence, ranking, model, options):
        return _Outcome(refusal(question), answered=False, sources=evidence.sources)
    if model is not None:
        return _generated(question, found, evidence, model, options, timer)
    with timer.stage("extract"):
        text, citations = extract(evidence, ranking, _enough_to_extract(question, evidence, ranking))
    return _Outcome(text, answered=True, sources=evidence.sources, citations=citations)


def _is_enough(
    question: str, evidence: Evidence, ranking: Ranking, model: LanguageModel | None, options: AskOptions
) -> bool:
    if not evidence.sentences or not options.abstain:
        return bool(evidence.sentences)
    if model is None:
        return ranking.strength >= _enough_to_extract(question, evidence, ranking)
    # Across scripts words tell nothing and cosines miss half of the right sources; the model can tell.
    return ranking.strength >= ENOUGH_TO_GENERATE or _is_across_scripts(question, evidence, ranking)


def _enough_to_extract(question: str, evidence: Evidence, ranking: Ranking) -> float:
    return ENOUGH_ACROSS_SCRIPTS if _is_across_scripts(question, evidence, ranking) else ENOUGH_TO_EXTRACT


def _is_across_scripts(question: str, evidence: Evidence, ranking: Ranking) -> bool:
    best = evidence.sentences[ranking.sentences[0].place].sentence.text
    return script(best) != script(question)


def _generated(
    question: str,
    found: Sequence[Passage],
    evidence: Evidence,
    model: LanguageModel,
    options: AskOptions,
    timer: StageTimer,
) -> _Outcome:
    budget = context_budget(
        question,
        model,
        max_context_tokens=options.max_context_tokens,
        max_tokens=options.max_tokens,
        instructions=options.instructions,
    )
    fitted = fit_sources(found, budget)
    with timer.stage("generate"):
        generated = generate(
            question,
            fitted.sources,
            model,
            template=options.template,
            instructions=options.instructions,
            max_tokens=options.max_tokens,
            temperature=options.temperature,
        )
    warnings = (*fitted.warnings, *generated.warnings)
    if generated.refused:
        return _Outcome(
            refusal(question),
            answered=False,
            sources=fitted.sources,
            completion=generated.completion,
            warnings=warnings,
        )
    with timer.stage("cite"):
        checked = check_citations(generated.completion.text.strip(), evidence.narrowed_to(fitted.sources))
    uncited = Notice("answer_without_citations", "the model cited no source; nothing of the answer is checked")
    return _Outcome(
        checked.text,
        answered=True,
        sources=fitted.sources,
        citations=checked.citations,
        invalid_citations=checked.invalid,
        completion=generated.completion,
        warnings=(*warnings, *checked.warnings, *(() if checked.citations else (uncited,))),
    )
