"""The keyword leg: BM25 over the query's terms, and how much of the query its best hit holds."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.indexes.port import Candidates
from app.retrieval.query_terms import QueryTerms, read_terms
from app.retrieval.run import SearchRun


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """What the keyword leg found.

    `term_weights` holds the inverse document frequency of each distinct term of the query. `strength` is the best hit's
    score by their sum, which is what a chunk of mean length scores that holds each term once: near 1 where the best hit
    holds the query, 0 where nothing was found.
    """

    candidates: Candidates
    term_weights: Mapping[str, float]
    strength: float


def find_by_terms(run: SearchRun, query: str) -> KeywordHits:
    """Return the scope's best chunks that hold a term of the query, and how much of it the best one holds."""
    opened = run.opened
    with run.timer.stage("keyword"):
        asked = run.terms[query] = read_terms(run, query)
        index = opened.index.keyword
        size = index.size()
        weights = {term: inverse_document_frequency(found, size) for term, found in asked.frequencies.items()}
        known = _rarest(run, asked.frequencies)
        candidates = index.search(known, run.plan.candidates, run.scope, asked.wording)
        _tell(run, asked, candidates, known)
        return KeywordHits(candidates, weights, _strength(candidates, weights))


def inverse_document_frequency(frequency: int, size: int) -> float:
    """Return BM25's idf (Robertson 1994, kept above 0); a term in no chunk has the largest."""
    return math.log(1 + (max(size, frequency) - frequency + 0.5) / (frequency + 0.5))


def covered(weights: Mapping[str, float], present: Iterable[str]) -> float:
    """Return the share of the terms' total weight that the present ones hold, 0 without any terms."""
    held = set(present)
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0


def _rarest(run: SearchRun, frequencies: Mapping[str, int]) -> list[str]:
    """Return the terms that some chunk holds, the rarest first, as many as are looked up; tell where there are more."""
    known = sorted((term for term, found in frequencies.items() if found), key=frequencies.__getitem__)
    most = run.plan.limits.query_terms
    if len(known) > most:
        detail = f"the {most} rarest of the query's {len(known)} known terms are looked up (FOOTNOTE_MAX_QUERY_TERMS)"
        run.warn("terms_cut", detail, limit=most, terms=len(known))
    return known[:most]


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


def _strength(candidates: Candidates, weights: Mapping[str, float]) -> float:
    return float(candidates.scores[0]) / sum(weights.values()) if len(candidates.keys) else 0.0
