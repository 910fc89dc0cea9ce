"""A collection's own words: what means the same, and what queries do without."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from app.indexes.analysis import Analyzer, fold
from app.indexes.port import Phrase


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words or phrases of one group of `synonyms` mean the same; queries do without `stop_words`."""

    synonyms: tuple[tuple[str, ...], ...] = ()
    stop_words: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> "Vocabulary":
        """Return the vocabulary of a collection's settings."""
        analysis = settings.get("analysis")
        if not isinstance(analysis, Mapping):
            return NO_VOCABULARY
        return cls(tuple(map(tuple, analysis.get("synonyms", ()))), tuple(analysis.get("stop_words", ())))


NO_VOCABULARY = Vocabulary()


@dataclass(frozen=True, slots=True)
class Synonym:
    """One entry of a group in one language: where a query says `phrase`, each of its `terms` has the `others`."""

    phrase: Phrase
    terms: tuple[str, ...]
    others: tuple[Phrase, ...]


Synonyms: TypeAlias = Mapping[str, tuple[Synonym, ...]]
"""Synonyms by the first term of their phrase."""


def synonyms_in(analyzer: Analyzer, text: str, synonyms: Synonyms) -> Iterator[Synonym]:
    """Yield each synonym whose phrase the text holds."""
    terms = analyzer.phrase(text)
    for place, term in enumerate(terms):
        for synonym in synonyms.get(term, ()):
            if terms[place : place + len(synonym.phrase)] == synonym.phrase:
                yield synonym


@lru_cache(maxsize=64)
def analyzed_synonyms(vocabulary: Vocabulary, analyzer: Analyzer) -> Synonyms:
    """Return the synonyms as the analyzer makes terms of them."""
    found: dict[str, list[Synonym]] = {}
    for group in vocabulary.synonyms:
        phrases = [analyzer.phrase(entry) for entry in group]
        for entry, phrase in zip(group, phrases, strict=True):
            others = tuple(dict.fromkeys(other for other in phrases if other and other != phrase))
            if phrase and others:
                found.setdefault(phrase[0], []).append(Synonym(phrase, tuple(analyzer.query_terms(entry)), others))
    return {first: tuple(entries) for first, entries in found.items()}


@lru_cache(maxsize=64)
def folded_stop_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the stop words as words of a query are compared with them."""
    return frozenset(map(fold, vocabulary.stop_words))
