"""Passages are read in the context that a search gives them, and every piece of it is exact."""

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.context import FENCE_TOKENS, fit_contexts, fit_sources
from app.answering.surroundings import chunk_at
from app.domain import Passage, PassageContext, Span
from app.inference.token_counter import estimate_tokens

SENTENCES = tuple(f"Sentence number {number} of the handbook says little." for number in range(60))
TEXT = " ".join(SENTENCES)


@pytest.fixture
def found(make_passage: Any) -> Any:
    """Return a hit on some sentences of `TEXT`, in the context of some more of them."""

    def hit(first: int, last: int, *around: int, same_as: int | None = None, document_id: str = "doc") -> Passage:
        start, end = TEXT.index(SENTENCES[first]), TEXT.index(SENTENCES[last]) + len(SENTENCES[last])
        passage = make_passage(TEXT[start:end], document_id, start=start)
        if same_as is not None:
            return replace(passage, context=PassageContext(0, 0, None, same_as))
        if not around:
            return passage
        begin, stop = TEXT.index(SENTENCES[around[0]]), TEXT.index(SENTENCES[around[1]]) + len(SENTENCES[around[1]])
        return replace(passage, context=PassageContext(begin, stop, TEXT[begin:stop]))

    return hit


def is_exact(source: Passage) -> bool:
    return source.text == TEXT[source.start : source.end]


def test_with_room_each_passage_stands_in_its_context_and_tells_where_it_was_found(found: Any) -> None:
    hit = found(10, 11, 8, 14)
    (source,) = fit_sources([hit], 3000).sources
    assert source.text == " ".join(SENTENCES[8:15])
    assert is_exact(source)
    assert source.hit == Span(hit.start, hit.end)
    assert source.chunk_id == hit.chunk_id


def test_a_hit_in_the_context_of_one_before_is_given_once(found: Any) -> None:
    hits = [found(10, 11, 8, 20), found(15, 16, same_as=1), found(40, 41)]
    fitted = fit_sources(hits, 3000)
    assert [source.start for source in fitted.sources] == [TEXT.index(SENTENCES[8]), hits[2].start]
    assert fitted.warnings == ()


def test_many_hits_of_one_context_fit_where_they_would_not_one_by_one(found: Any) -> None:
    hits = [found(10, 11, 10, 19), *(found(place, place + 1, same_as=1) for place in range(12, 19))]
    budget = estimate_tokens(TEXT[:620]) + FENCE_TOKENS
    assert sum(estimate_tokens(hit.text) + FENCE_TOKENS for hit in hits) > budget
    fitted = fit_sources(hits, budget)
    assert [source.text for source in fitted.sources] == [" ".join(SENTENCES[10:20])]
    assert fitted.warnings == ()


def test_what_was_found_comes_before_what_stands_around_it(found: Any) -> None:
    """A context that would leave no room for the other hits is cut at sentences on both sides of its own."""
    hits = [found(10, 10, 0, 30), found(40, 40, 35, 45), found(50, 50)]
    budget = 600
    fitted = fit_sources(hits, budget)
    assert [source.hit or Span(source.start, source.end) for source in fitted.sources] == [
        Span(hit.start, hit.end) for hit in hits
    ]
    assert all(is_exact(source) for source in fitted.sources)
    first = fitted.sources[0]
    assert first.start < hits[0].start
    assert first.end > hits[0].end
    assert first.text.startswith("Sentence number")
    assert first.text.endswith("says little.")
    assert [warning.code for warning in fitted.warnings] == ["context_truncated"]


def test_without_room_for_all_hits_no_context_is_given(found: Any) -> None:
    hits = [found(place, place + 9, 0, 59) for place in (0, 20, 40)]
    fitted = fit_sources(hits, 400)
    assert all(source.hit is None for source in fitted.sources)
    assert fitted.warnings[0].extra["left_out"] > 0


def test_without_a_prompt_every_hit_stays_and_contexts_take_what_is_left(found: Any) -> None:
    hits = [found(place, place + 9, 0, 59) for place in (0, 20, 40)]
    assert list(fit_contexts(hits, 100).sources) == hits
    assert [warning.code for warning in fit_contexts(hits, 100).warnings] == ["context_truncated"]


@given(data=st.data(), budget=st.integers(300, 4000))
def test_sources_are_exact_hold_every_hit_once_and_stay_within_the_budget(data: Any, budget: int) -> None:
    firsts = data.draw(st.lists(st.integers(0, 58), min_size=1, max_size=6, unique=True))
    hits = []
    for first in firsts:
        begin, stop = data.draw(st.integers(0, first)), data.draw(st.integers(first, 59))
        start, end = TEXT.index(SENTENCES[first]), TEXT.index(SENTENCES[first]) + len(SENTENCES[first])
        low, high = TEXT.index(SENTENCES[begin]), TEXT.index(SENTENCES[stop]) + len(SENTENCES[stop])
        context = PassageContext(low, high, TEXT[low:high])
        hits.append(_passage(start, end, context))
    fitted = fit_sources(hits, budget)
    assert fitted.sources
    assert all(is_exact(source) for source in fitted.sources)
    assert sum(estimate_tokens(source.text) + FENCE_TOKENS for source in fitted.sources) <= budget
    if not any(warning.extra["left_out"] for warning in fitted.warnings):
        spans = [(source.start, source.end) for source in fitted.sources]
        assert all(any(low <= hit.start and hit.end <= high for low, high in spans) for hit in hits)
    for one, other in permutations(fitted.sources, 2):
        assert not (other.start <= one.start and one.end <= other.end)


@given(cuts=st.sets(st.integers(1, 99)), overlap=st.integers(0, 5))
def test_the_chunk_at_a_place_is_the_last_that_begins_there_or_before(cuts: set[int], overlap: int) -> None:
    starts = [0, *sorted(cuts)]
    ends = [*(start + overlap for start in starts[1:]), 100]
    chunks = [SimpleNamespace(start=start, end=end) for start, end in zip(starts, ends, strict=True)]

    class Store:
        def document(self, document_id: str) -> Any:
            return SimpleNamespace(chunk_count=len(chunks))

        def chunks(self, document_id: str, *, limit: int, after: int) -> Any:
            return chunks[after + 1 : after + 1 + limit]

    for place in range(100):
        found = chunk_at(Store(), "d", place)  # type: ignore[arg-type]
        assert found is [chunk for chunk in chunks if chunk.start <= place][-1]


def _passage(start: int, end: int, context: PassageContext) -> Passage:
    return Passage(
        rank=1,
        chunk_id=f"c{start}",
        document_id="doc",
        collection="c",
        title="",
        text=TEXT[start:end],
        start=start,
        end=end,
        page_start=None,
        page_end=None,
        heading_path=(),
        score=1.0,
        score_type="rrf",
        legs={},
        fused=None,
        metadata={},
        context=context,
    )
