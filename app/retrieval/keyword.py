"""The keyword leg: BM25 over the query's terms, and how much of the query the collection and its best hits know."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.indexes.opening import OpenCollection
from app.indexes.port import Candidates
from app.retrieval.query_terms import QueryTerms, read_terms
from app.retrieval.run import SearchRun

COVERAGE_HITS = 5
"""The first hits of which the best one's coverage counts."""


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """What the keyword leg found.

    `term_weights` holds the inverse document frequency of each distinct term of the query. `known` is the weighted
    share of them that the collection has, `coverage` the share that the best one of the first five hits has.
    """

    candidates: Candidates
    term_weights: Mapping[str, float]
    known: float
    coverage: float


def find_by_terms(run: SearchRun, query: str) -> KeywordHits:
    """Return the scope's best chunks that hold a term of the query, and how well they know the query."""
    opened = run.opened
    with run.timer.stage("keyword"):
        asked = read_terms(run, query)
        index = opened.index.keyword
        size = index.size()
        weights = {term: inverse_document_frequency(found, size) for term, found in asked.frequencies.items()}
        candidates = index.search(list(weights), run.plan.candidates, run.scope, asked.wording)
        known = [term for term, found in asked.frequencies.items() if found]
        _tell(run, asked, candidates, known)
        return KeywordHits(
            candidates,
            weights,
            known=covered(weights, known),
            coverage=_coverage(opened, candidates, weights, asked),
        )


def inverse_document_frequency(frequency: int, size: int) -> float:
    """Return BM25's idf (Robertson 1994, kept above 0); a term in no chunk has the largest."""
    return math.log(1 + (max(size, frequency) - frequency + 0.5) / (frequency + 0.5))


def covered(weights: Mapping[str, float], present: Iterable[str]) -> float:
    """Return the share of the terms' total weight that the present ones hold, 0 without any terms."""
    held = set(present)
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0


def _tell(run: SearchRun, asked: QueryTerms, candidates: Candidates, known: list[str]) -> None:
    for word, used in asked.guessed.items():
        detail = (
            f"no text holds {word!r}, so {', '.join(used)} counted as it; `fuzzy: false` looks for exact words only"
        )
        run.warn("fuzzy_match", detail, word=word, used=list(used))
    run.trace.add(
        "keyword",
        candidates,
        terms=list(asked.frequencies),
        matched=known,
        fuzzy=dict(asked.guessed),
        synonyms=dict(asked.synonyms),
    )


def _coverage(opened: OpenCollection, candidates: Candidates, weights: Mapping[str, float], asked: QueryTerms) -> float:
    chunks = opened.store.indexed_chunks(candidates.keys[:COVERAGE_HITS].tolist()) if len(candidates.keys) else []
    held = (asked.held_by(opened.analyzer.of(chunk.language).terms(chunk.indexed_text)) for chunk in chunks)
    return max((covered(weights, terms) for terms in held), default=0.0)
