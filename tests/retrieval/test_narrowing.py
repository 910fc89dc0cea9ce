"""Presets, and searches inside the nearest parents."""

from typing import Any

import pytest

from app.errors import EmbeddingUnavailable
from app.filters import Condition, Operator
from app.retrieval.options import plan_search
from app.retrieval.plan import RerankOptions, TransformOptions
from app.retrieval.presets import PRESETS
from app.settings import Settings


def test_a_narrowed_search_sees_the_nearest_parents_alone(enhanced: Any) -> None:
    enhanced.put("loose", "apples and pears without a parent")
    result = enhanced.search("apples grow on trees", narrow_to_parents=1, top_k=10)
    assert sorted(passage.text for passage in result.passages) == ["apples grow on trees", "pears grow on trees"]
    assert result.warnings == ()


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_a_chunk_without_a_parent_counts_as_its_own(enhanced: Any, mode: Any) -> None:
    """A document that was cut without parents is not left out where others have some."""
    enhanced.put("loose", "bread needs flour", "apples grow on trees in rows")
    asked = {"query": "bread needs flour", "mode": mode, "top_k": 10}
    nearest = enhanced.search(narrow_to_parents=1, **asked)
    assert [passage.text for passage in nearest.passages] == ["bread needs flour"]
    more = enhanced.search(narrow_to_parents=3, **asked)
    assert {passage.text for passage in more.passages} >= {"bread needs flour", "engines need oil", "wheels need air"}
    assert (nearest.warnings, more.warnings) == ((), ())


def test_a_restriction_holds_for_chunks_without_a_parent_too(enhanced: Any) -> None:
    enhanced.put("loose", "apples and pears", "apples alone")
    result = enhanced.search("apples -pears", query_syntax="simple", narrow_to_parents=5, top_k=10)
    assert "apples alone" in [passage.text for passage in result.passages]
    assert not any("pears" in passage.text for passage in result.passages)


@pytest.mark.parametrize("forced", [None, Condition("team", Operator.EQ, "garden")])
def test_better_hits_outside_take_no_place_of_keyword_hits_inside(shelf: Any, nested: Any, forced: Any) -> None:
    """Every chunk of the second parent ranks higher by words than those of the first, which alone may be seen."""
    inside = ("apples grow on trees and are picked by hand in autumn", "pears grow on trees and so do many apples")
    outside = ("apples", "cold apples", "apples again", *("wheels need air and engines need oil",) * 9)
    nested("orchard", (*inside, *outside), (len(inside), len(outside)), team="garden")
    asked = {"query": "apples", "candidates": 2, "top_k": 2, "forced_filter": forced}
    assert not {passage.text for passage in shelf.search(mode="keyword", **asked).passages} & set(inside)
    result = shelf.search(narrow_to_parents=1, **asked)
    assert {passage.text for passage in result.passages} == set(inside)
    assert all("keyword" in passage.legs for passage in result.passages)


def test_a_narrowed_search_knows_the_words_outside_as_well_as_any(enhanced: Any) -> None:
    """How rare a word is does not depend on where the search looks, under a key's filter neither."""
    enhanced.put("loose", "engines need no parent", team="garage")
    asked = {"query": "apples parent", "top_k": 10}
    free = enhanced.search(**asked).term_weights
    for forced in (None, Condition("$document_id", Operator.PREFIX, "")):
        assert enhanced.search(narrow_to_parents=1, forced_filter=forced, **asked).term_weights == free


@pytest.mark.parametrize(
    ("options", "failure"), [({"mode": "keyword"}, None), ({}, EmbeddingUnavailable("down"))], ids=["keyword", "failed"]
)
def test_a_search_that_cannot_be_narrowed_says_so(enhanced: Any, options: Any, failure: Any) -> None:
    enhanced.embedder.failure = failure
    result = enhanced.search("apples engines", narrow_to_parents=1, top_k=10, **options)
    assert len(result.passages) == 2
    assert "not_narrowed" in [warning.code for warning in result.warnings]


def test_a_collection_without_parents_is_searched_whole_and_says_so(shelf: Any) -> None:
    shelf.put("loose", "apples and pears")
    result = shelf.search("apples", narrow_to_parents=5)
    assert [passage.document_id for passage in result.passages] == ["loose"]
    assert [warning.code for warning in result.warnings] == ["no_parent_vectors"]


def test_a_field_that_the_collection_lacks_is_told(shelf: Any) -> None:
    shelf.put("loose", "apples and pears")
    result = shelf.search("apples", fields=["context", "content"])
    assert [passage.document_id for passage in result.passages] == ["loose"]
    assert [warning.code for warning in result.warnings] == ["no_content_vectors"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_plan(preset: str) -> None:
    assert plan_search("q", Settings(), {"preset": preset}, {}).preset == preset


def test_a_field_beside_a_preset_wins() -> None:
    plan = plan_search("q", Settings(), {"preset": "ultimate", "rerank": None, "top_k": 3}, {})
    assert plan.rerank is None
    assert plan.narrow_to_parents == 50
    assert plan.transform == TransformOptions(hyde=True)


def test_a_preset_of_the_request_wins_over_the_collections_options() -> None:
    defaults = {"preset": "ultimate", "narrow_to_parents": 7}
    assert plan_search("q", Settings(), {}, defaults).narrow_to_parents == 7
    plan = plan_search("q", Settings(), {"preset": "power"}, defaults)
    assert plan.narrow_to_parents == 50
    assert plan.rerank == RerankOptions("embedding", 10)
