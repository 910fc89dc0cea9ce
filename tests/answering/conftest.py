"""Passages, a language model that answers on cue, and the real analyzer and hashed embedder."""

from collections.abc import Callable, Sequence

import pytest

from app.answering.ask import AskOptions, ask
from app.answering.evidence import Evidence
from app.answering.surroundings import FindChunk
from app.domain import Answer, Passage
from app.errors import FootnoteError
from app.indexes.analysis import Analyzer
from app.inference.embedders.hashed import HashedEmbedder
from app.inference.port import Completion, Message
from app.retrieval.search import SearchResult

ANALYZER = Analyzer()


class ScriptedModel:
    """A language model that says what it is told and remembers what it was asked."""

    name = "scripted"

    def __init__(self, text: str = "", context_tokens: int = 8192, finish_reason: str = "stop") -> None:
        self.text = text
        self.context_tokens = context_tokens
        self.finish_reason = finish_reason
        self.failure: FootnoteError | None = None
        self.asked: list[Sequence[Message]] = []

    def complete(self, messages: Sequence[Message], *, max_tokens: int, temperature: float) -> Completion:
        self.asked.append(messages)
        if self.failure:
            raise self.failure
        return Completion(self.text, self.name, 11, 7, self.finish_reason)

    def close(self) -> None: ...


class FailingEmbedder(HashedEmbedder):
    """The hashed embedder with a failure for everything."""

    def __init__(self, failure: FootnoteError) -> None:
        self.failure = failure

    def embed_passages(self, texts: Sequence[str]):
        raise self.failure


def passage(
    text: str, document_id: str = "doc", *, start: int = 0, page: int | None = None, title: str = ""
) -> Passage:
    """Return a passage that stands at `start` of its document."""
    return Passage(
        rank=1,
        chunk_id=f"{document_id}-{start}",
        document_id=document_id,
        collection="c",
        title=title,
        text=text,
        start=start,
        end=start + len(text),
        page_start=page,
        page_end=page,
        heading_path=(),
        score=0.1,
        score_type="rrf",
        legs={},
        fused=0.1,
        metadata={},
    )


def evidence_of(*passages: Passage, embedder: HashedEmbedder | None = None) -> Evidence:
    """Return the evidence of passages."""
    return Evidence(passages, ANALYZER, embedder or HashedEmbedder())


def asked(
    question: str,
    *passages: Passage,
    model: ScriptedModel | None = None,
    embedder: HashedEmbedder | None = None,
    search: Callable[[str], SearchResult] | None = None,
    find_chunk: FindChunk | None = None,
    **options,
) -> Answer:
    """Ask over passages that a search is said to have found, or with a search of one's own."""
    return ask(
        question,
        search=search or (lambda query: SearchResult(passages, (query,), "hybrid")),
        language_model=model,
        embedder=embedder or HashedEmbedder(),
        analyzer=ANALYZER,
        options=AskOptions(**options),
        find_chunk=find_chunk,
    )


@pytest.fixture
def make_passage() -> Callable[..., Passage]:
    return passage


@pytest.fixture
def make_evidence() -> Callable[..., Evidence]:
    return evidence_of


@pytest.fixture
def asks() -> Callable[..., Answer]:
    return asked


@pytest.fixture
def scripted() -> type[ScriptedModel]:
    return ScriptedModel


@pytest.fixture
def failing_embedder() -> type[FailingEmbedder]:
    return FailingEmbedder
