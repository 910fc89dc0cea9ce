"""Less of the same: near-duplicates, maximal marginal relevance, neighbours that merge, full documents."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.diversity import _by_marginal_relevance, _decisions, _without_near_duplicates
from app.retrieval.plan import DiversityOptions

SAME = "parents take 320 working days of parental leave"
OTHER = "parental leave is paid by the insurance office"


def test_the_same_paragraph_in_six_documents_leaves_room_for_another(shelf: Any) -> None:
    for place in range(6):
        shelf.put(f"copy-{place}", SAME)
    shelf.put("other", OTHER)
    assert "other" not in shelf.find("working days of parental leave", top_k=3)
    found = shelf.find("working days of parental leave", top_k=3, diversity=DiversityOptions())
    assert sorted(found) == ["copy-0", "other"]


def test_without_a_limit_near_duplicates_stay(shelf: Any) -> None:
    shelf.put("one", SAME)
    shelf.put("two", SAME)
    assert len(shelf.find("parental leave", diversity=DiversityOptions(near_duplicates=None))) == 2


def test_neighbours_that_touch_become_one_exact_passage(shelf: Any) -> None:
    shelf.put("leave", "leave for parents begins in May", "leave for parents ends in June", "engines need oil")
    result = shelf.search("leave for parents", mode="keyword", diversity=DiversityOptions(near_duplicates=None))
    [passage] = result.passages
    assert passage.text == "leave for parents begins in May\nleave for parents ends in June"
    assert passage.text == shelf.opened.store.text("leave", passage.start, passage.end)
    assert len(passage.merged) == 1


def test_a_hit_between_two_better_ones_makes_one_of_all_three(shelf: Any) -> None:
    words = ("leave leave leave", "the office says that leave is granted in writing", "leave leave", "engines need oil")
    shelf.put("a", *words)
    shelf.put("b", "leave for engines")
    asked = {"query": "leave", "mode": "keyword", "max_per_document": 2}
    assert [(hit.document_id, hit.start) for hit in shelf.search(**asked).passages][:2] == [("a", 0), ("a", 67)]
    result = shelf.search(**asked, diversity=DiversityOptions(relevance=1, near_duplicates=None))
    assert [passage.text for passage in result.passages] == ["\n".join(words[:3]), "leave for engines"]
    assert len(result.passages[0].merged) == 2


def test_merging_makes_no_passage_without_bounds(shelf: Any) -> None:
    shelf.put("long", *(f"leave {place} " + "word " * 500 for place in range(8)))
    result = shelf.search("leave", mode="keyword", top_k=8, diversity=DiversityOptions(near_duplicates=None))
    assert len(result.passages) > 1
    assert max(passage.end - passage.start for passage in result.passages) <= 6000


def test_no_document_gives_more_than_its_share(shelf: Any) -> None:
    shelf.put("much", "leave one", "leave two", "leave three", "leave four")
    shelf.put("little", "leave is granted by the office in writing")
    found = shelf.find("leave", mode="keyword", top_k=3, max_per_document=2)
    assert sorted(found) == ["little", "much", "much"]


def test_a_document_is_given_once_with_its_other_hits(shelf: Any) -> None:
    shelf.put("much", "leave one", "leave two", "leave three")
    shelf.put("little", "leave is granted by the office in writing")
    result = shelf.search("leave", mode="keyword", group_by="document")
    by_document = {passage.document_id: passage for passage in result.passages}
    assert {name: len(passage.group) for name, passage in by_document.items()} == {"much": 2, "little": 0}
    assert by_document["much"].group[0].score <= by_document["much"].score


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_full_relevance_keeps_the_order_and_any_mix_keeps_every_hit(scores: list[float], seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(scores), 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ranked = np.array(sorted(scores, reverse=True), np.float32)
    places = np.arange(len(scores))
    cosines = vectors @ vectors.T
    kept = _by_marginal_relevance(ranked, cosines, places, DiversityOptions(relevance=1))
    assert kept.tolist() == places.tolist()
    mixed = _by_marginal_relevance(ranked, cosines, places, DiversityOptions(relevance=0.5))
    assert sorted(mixed.tolist()) == places.tolist()
    assert mixed[0] == 0 or ranked[mixed[0]] == ranked[0]


@pytest.mark.parametrize(("limit", "kept"), [(1.0, [0, 2]), (0.5, [0, 2]), (0.1, [0])])
def test_a_hit_near_a_better_one_is_left_out(limit: float, kept: list[int]) -> None:
    vectors = np.array([[1, 0], [1, 0], [0.3, np.sqrt(1 - 0.09)]], np.float32)
    assert _without_near_duplicates(vectors @ vectors.T, limit).tolist() == kept


@given(st.integers(2, 12), st.integers(0, 10_000), st.sampled_from([0.3, 0.7]))
def test_the_decisions_that_a_trace_tells_are_those_that_made_the_order(count: int, seed: int, weight: float) -> None:
    chosen = np.random.default_rng(seed)
    vectors = chosen.normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = np.sort(chosen.random(count).astype(np.float32))[::-1]
    kept = np.sort(chosen.permutation(count)[: max(2, count - 2)])
    places = _by_marginal_relevance(scores, vectors @ vectors.T, kept, DiversityOptions(relevance=weight))
    decisions = _decisions(scores, vectors @ vectors.T, kept, places)
    worth = [weight * each["relevance"] - (1 - weight) * each["nearness"] for each in decisions]
    assert len(decisions) == len(kept)
    assert decisions[0]["nearness"] == 0
    # What is nearer to more hits is worth less, so no later choice can have been worth more than an earlier one.
    assert all(later <= earlier + 1e-3 for earlier, later in pairwise(worth))


def test_a_trace_names_near_duplicates_and_what_decided_on_the_others(shelf: Any) -> None:
    for name, text in (("one", SAME), ("two", SAME), ("other", OTHER)):
        shelf.put(name, text)
    result = shelf.search("working days of parental leave", explain=True, diversity=DiversityOptions())
    stages = {stage.stage: stage for stage in result.trace}
    [left_out] = stages["near_duplicates"].hits
    given = [hit.document_id for hit in stages["diversify"].hits]
    assert sorted([left_out.document_id, *given]) == ["one", "other", "two"]
    assert len(stages["diversify"].facts["decisions"]) == len(given)
