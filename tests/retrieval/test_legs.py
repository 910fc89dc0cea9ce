"""A trace names what the dense leg found for each text, whichever way its vectors were searched."""

from typing import Any

import pytest


def dense_stages(result: Any) -> list[Any]:
    return [stage for stage in result.trace if stage.stage == "dense"]


@pytest.mark.parametrize(
    "options",
    [{}, {"query_syntax": "simple"}, {"narrow_to_parents": 1, "fields": ("content",)}],
    ids=["plain", "restricted", "narrowed"],
)
def test_the_dense_leg_tells_its_hits(enhanced: Any, options: dict[str, Any]) -> None:
    result = enhanced.search('pears "grow"', explain=True, **options)
    [stage] = dense_stages(result)
    told = {hit.chunk_id: hit.score for hit in stage.hits}
    found = {hit.chunk_id: hit.legs["dense"].score for hit in result.passages if "dense" in hit.legs}
    assert found
    assert told == found
    assert stage.count == len(stage.hits)
    assert (stage.facts["query"], stage.facts["fields"]) == (0, list(options.get("fields", ("context",))))


def test_every_query_has_a_list_of_its_own(shelf: Any) -> None:
    shelf.put("pears", "pears grow on trees")
    result = shelf.search("pears", queries=("trees", "engines"), mode="dense", explain=True)
    assert [stage.facts["query"] for stage in dense_stages(result)] == [0, 1, 2]
