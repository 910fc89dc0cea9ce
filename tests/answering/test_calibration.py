"""The thresholds of `ask` hold for the embedded model on real questions; decision 0007 has the whole table."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.answering.ask import AskOptions, ask
from app.answering.citations import check_citations
from app.answering.evidence import Evidence
from app.domain import Answer, Passage
from app.indexes.analysis import Analyzer
from app.inference.embedders.e5_files import converted_files
from app.inference.embedders.multilingual_e5 import MultilingualE5
from app.inference.embedding_cache import CachedEmbedder
from app.inference.port import Embedder
from app.retrieval.keyword import inverse_document_frequency
from app.retrieval.search import SearchResult

PARAGRAPHS = 40
QUESTIONS = 50

pytestmark = [pytest.mark.model, pytest.mark.shared, pytest.mark.slow]


@pytest.fixture(scope="module")
def data(pytestconfig: pytest.Config) -> Path:
    folder = pytestconfig.rootpath.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the data sets are not beside the project")
    return folder


@pytest.fixture(scope="module")
def embedder(model_folder: Path) -> Iterator[Embedder]:
    embedder = CachedEmbedder(MultilingualE5("multilingual-e5-small", lambda: converted_files(model_folder), 2), 10**8)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def analyzer() -> Analyzer:
    return Analyzer()


def lines(path: Path, limit: int | None = None) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, limit)]


class Reader:
    """Asks the first paragraphs of a data set, found by exact cosine."""

    def __init__(self, paragraphs: list[dict[str, Any]], embedder: Embedder, analyzer: Analyzer, make_passage) -> None:
        self.passages: list[Passage] = [make_passage(each["text"], each["_id"]) for each in paragraphs]
        self.vectors = embedder.embed_passages([passage.text for passage in self.passages])
        self.terms = [set(analyzer.terms(passage.text)) for passage in self.passages]
        self.embedder, self.analyzer = embedder, analyzer

    def search(self, question: str) -> SearchResult:
        order = np.argsort(-(self.vectors @ self.embedder.embed_queries([question])[0]))[:5]
        weights = {
            term: inverse_document_frequency(sum(term in terms for terms in self.terms), len(self.terms))
            for term in self.analyzer.query_terms(question)
        }
        return SearchResult(tuple(self.passages[place] for place in order), (question,), "dense", term_weights=weights)

    def ask(self, question: str) -> Answer:
        return ask(
            question,
            search=self.search,
            language_model=None,
            embedder=self.embedder,
            analyzer=self.analyzer,
            options=AskOptions(),
        )


@pytest.fixture(params=["xquad_en", "xquad_zh"])
def reader(request, data, embedder, analyzer, make_passage) -> tuple[str, Reader]:
    paragraphs = lines(data / request.param / "corpus.jsonl", PARAGRAPHS)
    return request.param, Reader(paragraphs, embedder, analyzer, make_passage)


def test_most_questions_get_a_sentence_that_holds_their_answer(reader, data) -> None:
    name, reader = reader
    questions = {each["_id"]: each["text"] for each in lines(data / name / "queries.jsonl")}
    wanted = lines(data / name / "answers.jsonl", 4 * QUESTIONS)[::4]
    answers = [(reader.ask(questions[each["query_id"]]), each["answers"]) for each in wanted]
    answered = [(answer, strings) for answer, strings in answers if answer.answered]
    right = [
        any(each["text"] in citation.quote for each in strings for citation in answer.citations)
        for answer, strings in answered
    ]
    assert len(answered) >= 0.8 * len(answers)
    assert sum(right) >= 0.8 * len(answered)


def test_questions_of_another_subject_get_none(reader, data) -> None:
    name, reader = reader
    other = "medline" if name == "xquad_en" else "dureader_robust"
    questions = [each["text"] for each in lines(data / other / "queries.jsonl", QUESTIONS)]
    assert sum(reader.ask(question).answered for question in questions) <= 0.1 * len(questions)


def test_a_claim_in_another_language_is_verified_by_its_meaning(data, embedder, analyzer, make_passage) -> None:
    english, chinese = (lines(data / name / "corpus.jsonl", 30) for name in ("xquad_en", "xquad_zh"))

    def verified(claims: list[dict[str, Any]], sources: list[dict[str, Any]]) -> list[bool]:
        found: list[bool] = []
        for claim, source in zip(claims, sources, strict=True):
            evidence = Evidence([make_passage(source["text"])], analyzer, embedder)
            sentence = claim["text"].split("。")[0]
            found += [citation.verified for citation in check_citations(f"{sentence}[1]。", evidence).citations]
        return found

    def without_numbers(pairs: list[dict[str, Any]]) -> list[int]:
        return [place for place, each in enumerate(pairs) if not any(c.isdigit() for c in each["text"].split("。")[0])]

    kept = without_numbers(chinese)
    own = verified([chinese[place] for place in kept], [english[place] for place in kept])
    far = verified([chinese[place] for place in kept], [english[(place + 15) % 30] for place in kept])
    assert sum(own) >= 0.8 * len(own)
    assert sum(far) <= 0.1 * len(far)
