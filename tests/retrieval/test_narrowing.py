"""Presets, and searches inside the nearest parents."""

from typing import Any

import pytest

from app.retrieval.options import plan_search
from app.retrieval.plan import RerankOptions, TransformOptions
from app.retrieval.presets import PRESETS
from app.settings import Settings


def test_a_narrowed_search_sees_the_nearest_parents_alone(enhanced: Any) -> None:
    enhanced.put("loose", "apples and pears without a parent")
    result = enhanced.search("apples grow on trees", narrow_to_parents=1, top_k=10)
    assert sorted(passage.text for passage in result.passages) == ["apples grow on trees", "pears grow on trees"]
    assert result.warnings == ()


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
