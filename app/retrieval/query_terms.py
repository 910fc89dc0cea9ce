"""What the keyword leg looks up for a text: its terms, and whatever else counts as one of them."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.indexes.analysis import Analyzer, fold, stop_words_of
from app.indexes.languages import DEFAULT_LANGUAGE, query_language
from app.indexes.opening import OpenCollection
from app.indexes.port import NO_RESTRICTION, Phrase, Restriction, Wording
from app.retrieval.query_syntax import TypedQuery, quoted_phrases
from app.retrieval.run import SearchRun
from app.retrieval.seen import seen_frequencies, seen_with_prefix
from app.retrieval.spelling import completions, misspellings
from app.retrieval.vocabulary import analyzed_synonyms, folded_stop_words, synonyms_in

MOST_COMPLETIONS = 50
"""Words that the last word of a query may become, those of the most chunks."""

LEAST_PREFIX = 2
"""Letters of a word that is completed; every chunk holds a word that begins with the one or other letter."""

MOST_GUESSED_WORDS = 8
"""Words of one query whose spelling is guessed."""

MOST_GUESSES = 2
"""Words that one misspelled word may stand for, those of the most chunks."""

GUESS_WEIGHT = 0.5
"""How much a guess counts beside a word that was written; see `docs/decisions/0020-keyword-queries.md`."""

LONGEST_PHRASE = 256
"""Terms by which a phrase is known."""

_LAST_WORD = re.compile(r"[^\W_]+$")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """Distinct terms, each with the number of chunks that hold it or an alternative; `wording` has the alternatives.

    `synonyms` are the phrases that stand for others, `guessed` the words that were taken for others, each with those.
    """

    frequencies: Mapping[str, int]
    wording: Wording
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    guessed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def forms(self) -> frozenset[str]:
        """Return every term that a chunk may have been found by."""
        alternatives = self.wording.alternatives.values()
        return frozenset(self.frequencies) | {term for phrases in alternatives for phrase in phrases for term in phrase}


@dataclass(slots=True)
class _Draft:
    """The terms while alternatives are added; `written` is the word of the query that a term was made of.

    `seen` are terms of which it is known that the search may know them.
    """

    written: dict[str, str] = field(default_factory=dict)
    alternatives: dict[str, dict[Phrase, None]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def add(self, term: str, written: str, others: Iterable[Phrase]) -> None:
        self.written.setdefault(term, written)
        more = {other: None for other in others if other != (term,)}
        if more:
            self.alternatives.setdefault(term, {}).update(more)

    def others(self) -> dict[str, tuple[Phrase, ...]]:
        return {term: tuple(others) for term, others in self.alternatives.items()}


def read_terms(run: SearchRun, text: str) -> QueryTerms:
    """Return what to look up for a text of the search: in its language, or in all that the collection holds."""
    text = unicodedata.normalize("NFC", text)
    analyzers, stop_words = _languages(run.opened, text)
    draft = _drafted(analyzers, text, stop_words | folded_stop_words(run.plan.vocabulary))
    synonyms = _add_synonyms(run, analyzers, text, draft)
    if run.plan.as_you_type:
        _add_completions(run, analyzers, text, draft)
    frequencies = _frequencies(run, draft)
    written = frozenset(draft.written)
    guessed = _guess(run, analyzers, draft, frequencies) if run.plan.fuzzy else {}
    raised = () if run.plan.query_syntax else _raised(analyzers, text)
    weights = dict.fromkeys(frequencies.keys() - written, GUESS_WEIGHT)
    wording = Wording(draft.others(), raised, weights, run.restriction, run.inside)
    return QueryTerms(frequencies, wording, synonyms, guessed)


def restriction_of(typed: TypedQuery, opened: OpenCollection) -> Restriction:
    """Return what a query requires and excludes as terms in every language; signs alone ask for nothing."""
    if not typed.required and not typed.excluded:
        return NO_RESTRICTION
    analyzers = analyzers_of(opened, typed.text)
    required = (_forms(analyzers, phrase) for phrase in typed.required)
    excluded = (_forms(analyzers, phrase) for phrase in typed.excluded)
    return Restriction(tuple(forms for forms in required if forms), tuple(form for forms in excluded for form in forms))


def analyzers_of(opened: OpenCollection, text: str) -> tuple[Analyzer, ...]:
    """Return the analyzers by which what a text may mean was read: the collection's, and that of its own language."""
    analyzers = opened.analyzers()
    return tuple(dict.fromkeys((*analyzers, *_languages(opened, text)[0]))) if len(analyzers) > 1 else analyzers


def _languages(opened: OpenCollection, text: str) -> tuple[Sequence[Analyzer], frozenset[str]]:
    """Return the analyzers and the stop words for a text."""
    analyzers = opened.analyzers()
    if len(analyzers) == 1:
        return analyzers, stop_words_of(None)
    language = query_language(text, (DEFAULT_LANGUAGE, *opened.languages()))
    if language is not None:
        # The default one is for documents whose language is not known.
        analyzers = tuple(dict.fromkeys((opened.analyzer, opened.analyzer.of(language))))
    return analyzers, stop_words_of(language)


def _drafted(analyzers: Sequence[Analyzer], text: str, stop_words: frozenset[str]) -> _Draft:
    draft = _Draft()
    for first, *others in zip(*(each.query_terms_with_offsets(text, stop_words) for each in analyzers), strict=True):
        term, start, end = first
        draft.add(term, text[start:end], ((other,) for other, _, _ in others))
    return draft


def _add_synonyms(run: SearchRun, analyzers: Sequence[Analyzer], text: str, draft: _Draft) -> dict[str, list[str]]:
    """Give each term of a phrase its synonyms; return them by phrase."""
    used: dict[str, list[str]] = {}
    if not run.plan.vocabulary.synonyms:
        return used
    given, most = 0, run.plan.limits.query_synonyms
    for analyzer in analyzers:
        for synonym in synonyms_in(analyzer, text, analyzed_synonyms(run.plan.vocabulary, analyzer)):
            given += len(synonym.others)
            if given > most:
                detail = f"the query's words have more than {most} synonyms; those of the first words count"
                run.warn("synonyms_cut", f"{detail} (FOOTNOTE_MAX_QUERY_SYNONYMS)", limit=most)
                return used
            for term in synonym.terms:
                if term in draft.written:
                    draft.add(term, "", synonym.others)
            used[" ".join(synonym.phrase)] = [" ".join(other) for other in synonym.others]
    return used


def _add_completions(run: SearchRun, analyzers: Sequence[Analyzer], text: str, draft: _Draft) -> None:
    last = _LAST_WORD.search(text)
    prefix = fold(last[0]) if last else ""
    # Of a script without spaces each character is a term, by which every longer word is found.
    if len(prefix) < LEAST_PREFIX or len(analyzers[0].phrase(prefix)) != 1:
        return
    found = seen_with_prefix(run, prefix, MOST_COMPLETIONS)
    draft.seen.update(found)
    found += [term for analyzer in analyzers for term in analyzer.stems(completions(prefix))]
    draft.add(analyzers[0].phrase(prefix)[0], prefix, ((term,) for term in dict.fromkeys(found)))


def _frequencies(run: SearchRun, draft: _Draft) -> dict[str, int]:
    """Return how many chunks hold each term or its most frequent alternative; a phrase counts by its rarest term."""
    asked = dict.fromkeys(draft.written)
    for phrases in draft.alternatives.values():
        asked |= dict.fromkeys(term for phrase in phrases for term in phrase)
    counts = dict(zip(asked, seen_frequencies(run, list(asked), draft.seen), strict=True))
    return {
        term: max(
            counts[term],
            *(min(counts[part] for part in phrase) for phrase in draft.alternatives.get(term, ())),
            0,
        )
        for term in draft.written
    }


def _guess(
    run: SearchRun, analyzers: Sequence[Analyzer], draft: _Draft, frequencies: dict[str, int]
) -> dict[str, list[str]]:
    """Put terms one edit away in the place of those that no chunk holds; return them by the word that was written."""
    guessed: dict[str, list[str]] = {}
    for term in [term for term, frequency in frequencies.items() if not frequency][:MOST_GUESSED_WORDS]:
        word = draft.written[term]
        near = misspellings(fold(word))
        candidates = list(dict.fromkeys(stem for analyzer in analyzers for stem in analyzer.stems(near)))
        counted = zip(candidates, seen_frequencies(run, candidates), strict=True)
        ranked = sorted(((count, found) for found, count in counted if count), reverse=True)[:MOST_GUESSES]
        if not ranked:
            continue
        guessed[word] = [found for _, found in ranked]
        best = ranked[0][1]
        draft.written.pop(term)
        draft.add(best, word, [*draft.alternatives.pop(term, {}), *((found,) for _, found in ranked[1:])])
        frequencies.pop(term)
        frequencies[best] = max(ranked[0][0], frequencies.get(best, 0))
    return guessed


def _raised(analyzers: Sequence[Analyzer], text: str) -> tuple[Phrase, ...]:
    phrases = [form for phrase in quoted_phrases(text) for form in _forms(analyzers, phrase)]
    return tuple(phrase for phrase in phrases if len(phrase) > 1)


def _forms(analyzers: Sequence[Analyzer], text: str) -> tuple[Phrase, ...]:
    forms = dict.fromkeys(analyzer.phrase(text)[:LONGEST_PHRASE] for analyzer in analyzers)
    return tuple(form for form in forms if form)
