import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from app.domain import Chunk, text_hash
from app.errors import Cancelled, FootnoteError, LanguageModelUnavailable, UpstreamRejected
from app.inference.port import Completion, Message
from app.ingestion.written_contexts import (
    MOST_REJECTIONS,
    ContextWriter,
    WrittenContexts,
    with_written_context,
    write_contexts,
)
from app.telemetry import counters

TEXTS = [f"paragraph number {i}" for i in range(10)]
TEXT = "\n".join(TEXTS)


@dataclass
class Model:
    """Says which passage it saw; `answer` can say or raise something else."""

    answer: Callable[[str], str] = lambda passage: f"about {passage}"
    context_tokens: int = 8192
    name: str = "scripted"
    asked: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int, temperature: float, patient: bool = False
    ) -> Completion:
        assert patient
        passage = messages[1].content.split("\n")[1]
        with self.lock:
            self.asked.append((messages[0].content, passage))
        return Completion(self.answer(passage), self.name, 100, 10, "stop")


class Store:
    """Keeps what is staged."""

    def __init__(self) -> None:
        self.staged: dict[bytes, str] = {}

    def stage_contexts(self, _job_id: str, fresh: dict[bytes, str]) -> None:
        self.staged |= fresh


class Report:
    """Remembers what it is told; cancels after so many chunks."""

    job_id = "job_1"

    def __init__(self, cancel_at: int | None = None) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.done: list[int] = []
        self._cancel_at = cancel_at

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        self.stages.append((name, total))

    def advance(self, done: int) -> None:
        self.done.append(done)
        if self._cancel_at is not None and done >= self._cancel_at:
            raise Cancelled("cancelled")


def pieces(texts: Sequence[str] = TEXTS) -> list[Chunk]:
    return [Chunk(i, 0, len(text), text, 3) for i, text in enumerate(texts)]


def write(
    model: Model | None, store: Store, report: Report | None = None, texts: Sequence[str] = TEXTS
) -> WrittenContexts:
    return write_contexts(
        pieces(texts),
        text=TEXT,
        title="Title",
        known=store.staged,
        writer=ContextWriter(model, max_tokens=50, requests=3),  # type: ignore[arg-type]
        store=store,  # type: ignore[arg-type]
        report=report or Report(),
    )


def test_every_chunk_is_described_after_one_prefix_and_the_cost_is_told() -> None:
    model, store, report = Model(), Store(), Report()
    before = counters.snapshot().get("contextualizer_prompt_tokens", 0)
    written = write(model, store, report)

    assert written.contexts == {text_hash(text): f"about {text}" for text in TEXTS} == store.staged
    assert len({prefix for prefix, _ in model.asked}) == 1
    assert written.cost == {
        "model": "scripted",
        "written": 10,
        "reused": 0,
        "missing": 0,
        "prompt_tokens": 1000,
        "completion_tokens": 100,
    }
    assert counters.snapshot()["contextualizer_prompt_tokens"] - before == 1000
    assert written.warnings == ()
    assert report.stages == [("contextualize", 10)]
    assert report.done[-1] == 10


def test_several_are_asked_for_side_by_side_after_the_first_came_back_alone() -> None:
    together = threading.Barrier(3)
    model = Model()

    def answer(passage: str) -> str:
        if passage != TEXTS[0]:
            together.wait(10)
        return passage

    model.answer = answer
    # One alone, and then three times three.
    assert len(write(model, Store()).contexts) == 10
    assert model.asked[0][1] == TEXTS[0]


def test_a_job_that_starts_again_asks_only_for_what_is_missing() -> None:
    store, first = Store(), Model()
    with pytest.raises(Cancelled):
        write(first, store, Report(cancel_at=4))
    kept = dict(store.staged)
    second = Model()
    written = write(second, store)
    assert len(kept) == 4
    assert {text_hash(passage) for _, passage in second.asked}.isdisjoint(kept)
    assert (written.cost["written"], written.cost["reused"]) == (6, 4)


def test_equal_chunks_are_asked_for_once() -> None:
    model = Model()
    write(model, Store(), texts=["same", "same", "other"])
    assert sorted(passage for _, passage in model.asked) == ["other", "same"]


def failing_after(count: int, error: FootnoteError) -> Model:
    model = Model()

    def answer(passage: str) -> str:
        if len(model.asked) > count:
            raise error
        return passage

    model.answer = answer
    return model


def test_a_model_that_fails_is_not_asked_again_and_what_it_wrote_stays() -> None:
    model = failing_after(4, LanguageModelUnavailable("The language model's server answered 503"))
    written = write(model, Store())
    assert len(written.contexts) == 4
    assert len(model.asked) <= 4 + 3
    (warning,) = written.warnings
    assert (warning.code, warning.extra) == ("contextualizer_unavailable", {"chunks": 6, "may_pass": True})
    assert "answered 503" in warning.detail


def test_an_answer_of_no_use_costs_its_own_chunk_only() -> None:
    model = Model()

    def answer(passage: str) -> str:
        if passage == TEXTS[5]:
            raise UpstreamRejected("The language model answered with no text")
        return passage

    model.answer = answer
    written = write(model, Store())
    assert text_hash(TEXTS[5]) not in written.contexts
    assert len(written.contexts) == 9
    assert written.warnings[0].extra == {"chunks": 1, "may_pass": False}


def test_a_model_without_one_useful_answer_is_given_up() -> None:
    model = failing_after(0, UpstreamRejected("refused"))
    assert write(model, Store()).contexts == {}
    assert len(model.asked) <= MOST_REJECTIONS + 3


@pytest.mark.parametrize("model", [None, Model(context_tokens=200)], ids=["no model", "a tiny window"])
def test_without_a_usable_model_headings_stand_alone(model: Model | None) -> None:
    written = write(model, Store())
    assert written.contexts == {}
    assert written.warnings[0].extra == {"chunks": 10, "may_pass": model is None}
    assert model is None or model.asked == []


def count_words(text: str) -> int:
    return len(text.split()) + 1


def test_what_was_written_stands_before_the_headings_as_far_as_the_window_goes() -> None:
    chunk = Chunk(0, 0, 9, "some text", 2, context="Title")
    whole = with_written_context(chunk, "it is about cats", count_words, 100)
    assert whole.indexed_text == "it is about cats\nTitle\nsome text"
    for window in range(4, 9):
        cut = with_written_context(chunk, "it is about cats", count_words, window)
        assert count_words(cut.indexed_text) <= window
        assert cut.context.endswith("Title")
        assert cut.context.removesuffix("Title").strip() in ("", "it", "it is", "it is about", "it is about cats")
        assert cut.written_context == "it is about cats"
    assert with_written_context(chunk, "it is about cats", count_words, 6).context == "it is\nTitle"


def test_writing_without_spaces_is_cut_anywhere() -> None:
    chunk = Chunk(0, 0, 2, "正文", 2)
    cut = with_written_context(chunk, "这一段讲的是猫", len, 6)
    assert cut.indexed_text == "这一段\n正文"
