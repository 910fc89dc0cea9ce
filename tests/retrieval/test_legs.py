"""A trace names what the dense leg found for each text, whichever way its vectors were searched."""

from typing import Any

import pytest

from app.retrieval import legs


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


def test_nothing_is_looked_up_after_an_error_of_the_other_leg_where_no_processor_is_idle(
    shelf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("pears", "pears grow on trees")
    monkeypatch.setattr(legs.processors, "beside", lambda _: None)
    looked_up: list[str] = []
    monkeypatch.setattr(legs, "find_by_terms", lambda _, text: looked_up.append(text))
    shelf.embedder.failure = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        shelf.search("pears")
    assert looked_up == []
