"""Answer without a model: the sentences that say it best, word for word; measured in decision 0007."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Plus

from app.answering.citations import cite
from app.answering.evidence import Evidence
from app.answering.mail_headers import asks_about_a_mail
from app.answering.markers import with_marker, without_markers
from app.domain import Citation, Notice
from app.errors import Unavailable, UpstreamRejected

EMBEDDED_SENTENCES = 40
"""The first sentences by words of which the meaning is looked at."""

MOST_SENTENCES = 3
SCORE_SHARE = 0.8
"""A further sentence is added when it scores at least this share of the first one's."""

PASSAGE_RANK_SHARE = 0.1
"""What the passage's place in the search counts beside words and meaning, which count a half each."""

SAME_SHARE = 0.8
"""A sentence of which an earlier one holds this share of terms says nothing new."""


@dataclass(frozen=True, slots=True)
class RankedSentence:
    """A sentence's place in the evidence; `score` orders this ranking, `strength` compares across questions.

    `strength` is the share of the question's weighted terms that the sentence holds (0 to 1), plus the larger of that
    share and twice its relative cosine.
    """

    place: int
    score: float
    strength: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Sentences, best first; `failure` is why their meaning could not be looked at."""

    sentences: tuple[RankedSentence, ...]
    failure: Unavailable | UpstreamRejected | None = None

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Return that words alone decided, where they did."""
        if self.failure is None:
            return ()
        return (Notice(self.failure.code, f"sentences are weighed by words alone: {self.failure.detail}"),)

    @property
    def strength(self) -> float:
        """Return the first sentence's strength, 0 without any."""
        return self.sentences[0].strength if self.sentences else 0.0


def rank_sentences(question: str, evidence: Evidence, term_weights: Mapping[str, float]) -> Ranking:
    """Return the sentences that look most like an answer: BM25 and cosine, each from 0 to 1, and the passage's rank.

    `term_weights` are the question's terms with their weights in the collection; where there are none, every term
    of the question counts the same. Header lines of mails are left out unless the question asks about a mail: the
    date that a mail was sent on is not the date that it tells of.
    """
    if not evidence.sentences:
        return Ranking(())
    weights = term_weights or dict.fromkeys(evidence.analyzer.query_terms(question), 1.0)
    words = BM25Plus([sentence.terms or ("",) for sentence in evidence.sentences]).get_scores(list(weights))
    # BM25Plus stays above 0 where a term is in most sentences; a stable sort keeps the passages' order among equals.
    candidates = _candidates(question, evidence)
    places = [place for place in np.argsort(-words, kind="stable").tolist() if place in candidates][:EMBEDDED_SENTENCES]
    coverage = evidence.coverage_in_context(weights, places)
    ranks = np.array([-evidence.sentences[place].source for place in places], np.float64)
    scores = (_spread(words[places]) + coverage) / 4 + PASSAGE_RANK_SHARE * _spread(ranks)
    cosines = np.zeros(len(places))
    failure = None
    try:
        cosines = evidence.question_cosines(question, places)
    except (Unavailable, UpstreamRejected) as error:
        failure = error
    scores += _spread(cosines) / 2
    strengths = coverage + np.maximum(coverage, 2 * cosines)
    order = np.argsort(-scores, kind="stable")
    return Ranking(tuple(RankedSentence(places[at], float(scores[at]), float(strengths[at])) for at in order), failure)


def _candidates(question: str, evidence: Evidence) -> set[int]:
    every = set(range(len(evidence.sentences)))
    if asks_about_a_mail(question):
        return every
    return {place for place in every if not evidence.sentences[place].is_header} or every


def extract(evidence: Evidence, ranking: Ranking, weakest: float) -> tuple[str, tuple[Citation, ...]]:
    """Return one to three sentences as an answer, each with its marker and citation; at least the first one.

    A further sentence must score nearly as well as the first, be no weaker than `weakest` and say something new.
    """
    text = ""
    citations: list[Citation] = []
    for place in _reading_order(evidence, _chosen(evidence, ranking.sentences, weakest)):
        found = evidence.sentences[place]
        if text and text[-1].isascii():
            text += " "
        start = len(text)
        # A number in brackets that the source itself has would read as a marker of ours.
        text += with_marker(without_markers(found.sentence.text), found.source + 1)
        citations.append(cite(evidence, [place], found.source + 1, (start, len(text)), verified=True))
    return text, tuple(citations)


def _chosen(evidence: Evidence, ranked: Sequence[RankedSentence], weakest: float) -> list[int]:
    chosen = [ranked[0].place]
    for candidate in ranked[1:]:
        if len(chosen) == MOST_SENTENCES or candidate.score < SCORE_SHARE * ranked[0].score:
            break
        terms = set(evidence.sentences[candidate.place].terms)
        if candidate.strength >= weakest and all(
            len(terms & set(evidence.sentences[place].terms)) < SAME_SHARE * len(terms) for place in chosen
        ):
            chosen.append(candidate.place)
    return chosen


def _reading_order(evidence: Evidence, places: Sequence[int]) -> list[int]:
    first_seen = list(dict.fromkeys(evidence.sentences[place].source for place in places))
    return sorted(places, key=lambda place: (first_seen.index(evidence.sentences[place].source), place))


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))
