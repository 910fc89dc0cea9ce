"""Check an answer's citations: for each marker the sentences of its source that support it best, quoted exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.answering.evidence import Evidence
from app.answering.markers import canonical_markers, claims_of
from app.answering.sentences import script
from app.domain import Citation, Notice
from app.errors import Unavailable, UpstreamRejected

WORD_SUPPORT = 0.6
"""A quote that holds this share of a claim's weighted terms verifies it."""

SOME_WORD_SUPPORT = 0.3
MEANING_SUPPORT = 0.45
"""So does one with this smaller share, if its relative cosine with the claim is this high; decision 0007 has both."""

TRANSLATION_SUPPORT = 0.36
"""So does one in another script with this relative cosine: 95 % of translations have it, and of sentences that only
share their subject 5 to 10 %."""

WIDER_QUOTE = 0.15
"""What a neighbouring sentence must add to the share to be quoted beside the best one."""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer whose every marker is `[n]` of a source that exists; `invalid` counts those that were not."""

    text: str
    citations: tuple[Citation, ...]
    invalid: int
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class _Quote:
    places: tuple[int, ...]
    verified: bool


def check_citations(text: str, evidence: Evidence) -> CheckedAnswer:
    """Return the answer with canonical markers, those of no source removed, and a citation for each that stays.

    A citation is `verified` when its quote holds every number of the claim and enough of its words, or fewer words
    and its meaning, or, in another script, its meaning alone. Without an embedder, words decide and a warning says so.
    """
    text, invalid = canonical_markers(text, len(evidence.sources))
    citations: list[Citation] = []
    warnings: dict[str, Notice] = {}
    for claim in claims_of(text):
        for marker in claim.markers:
            try:
                quote = _quote(evidence, claim.text, marker - 1, by_meaning=True)
            except (Unavailable, UpstreamRejected) as failure:
                warnings[failure.code] = Notice(failure.code, f"quotes are chosen by words alone: {failure.detail}")
                quote = _quote(evidence, claim.text, marker - 1, by_meaning=False)
            citations.append(cite(evidence, quote.places, marker, (claim.start, claim.end), verified=quote.verified))
    return CheckedAnswer(text, tuple(citations), invalid, tuple(warnings.values()))


def cite(evidence: Evidence, places: Sequence[int], marker: int, span: tuple[int, int], *, verified: bool) -> Citation:
    """Return a citation of neighbouring sentences of the marker's source, or of all its text where it has none."""
    source = evidence.sources[marker - 1]
    start = evidence.sentences[places[0]].sentence.start if places else 0
    end = evidence.sentences[places[-1]].sentence.end if places else len(source.text)
    return Citation(
        marker=marker,
        answer_start=span[0],
        answer_end=span[1],
        quote=source.text[start:end],
        document_id=source.document_id,
        chunk_id=source.chunk_id,
        start=source.start + start,
        end=source.start + end,
        page=source.page_start,
        heading_path=source.heading_path,
        verified=verified,
    )


def _quote(evidence: Evidence, claim: str, source: int, *, by_meaning: bool) -> _Quote:
    places = evidence.of_source(source)
    if not places:
        return _Quote((), verified=False)
    terms = evidence.analyzer.query_terms(claim)
    weights = evidence.weights(terms)
    shares = evidence.coverage(weights, [[place] for place in places])
    best = int(np.argmax(shares))
    cosine = 0.0
    if by_meaning and shares[best] < WORD_SUPPORT:
        cosines = evidence.claim_cosines(claim, places)
        best = int(np.argmax(shares + cosines))
        cosine = float(cosines[best])
    windows = [places[max(0, best - 1) : best + 1], places[best : best + 2]]
    alone, *wider = evidence.coverage(weights, [[places[best]], *windows]).tolist()
    chosen, share = [places[best]], alone
    if max(wider) >= alone + WIDER_QUOTE:
        chosen, share = windows[int(np.argmax(wider))], max(wider)
    held = {term for place in chosen for term in evidence.sentences[place].terms}
    numbers = {term for term in terms if any(character.isdigit() for character in term)}
    is_translation = script(evidence.sentences[chosen[0]].sentence.text) != script(claim)
    supported = (
        share >= WORD_SUPPORT
        or (share >= SOME_WORD_SUPPORT and cosine >= MEANING_SUPPORT)
        or (is_translation and cosine >= TRANSLATION_SUPPORT)
    )
    return _Quote(tuple(chosen), verified=supported and numbers <= held)
