"""The keyword leg: BM25 over the query's terms, and how much of the query the collection and its best hits know."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.stores.port import Scope
from app.telemetry import StageTimer

COVERAGE_HITS = 5
"""The first hits of which the best one's coverage counts."""


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """What the keyword leg found, with the weight (inverse document frequency) of each distinct term of the query."""

    candidates: Candidates
    term_weights: Mapping[str, float]
    known: float


def find_by_terms(opened: OpenCollection, query: str, limit: int, scope: Scope, timer: StageTimer) -> KeywordHits:
    """Return up to `limit` chunks of the scope that hold a term of the query, and how much of it is `known`."""
    with timer.stage("keyword"):
        terms = list(dict.fromkeys(opened.analyzer.query_terms(query)))
        index = opened.index.keyword
        frequencies = index.document_frequencies(terms)
        size = index.size()
        weights = {
            term: inverse_document_frequency(frequency, size)
            for term, frequency in zip(terms, frequencies, strict=True)
        }
        known = covered(weights, (term for term, frequency in zip(terms, frequencies, strict=True) if frequency))
        return KeywordHits(index.search(terms, limit, scope), weights, known)


def inverse_document_frequency(frequency: int, size: int) -> float:
    """Return BM25's idf (Robertson 1994, kept above 0); a term in no chunk has the largest."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def covered(weights: Mapping[str, float], present: Iterable[str]) -> float:
    """Return the share of the terms' total weight that the present ones hold, 0 without any terms."""
    total = sum(weights.values())
    return sum(weights[term] for term in set(present) & weights.keys()) / total if total else 0.0


def coverage(opened: OpenCollection, hits: KeywordHits) -> float:
    """Return the largest share of the query that one of the first five hits contains."""
    chunks = opened.store.indexed_chunks(hits.candidates.keys[:COVERAGE_HITS].tolist())
    return max((covered(hits.term_weights, opened.analyzer.terms(chunk.indexed_text)) for chunk in chunks), default=0.0)
