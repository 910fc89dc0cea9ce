"""What one answer holds at most: each limit is a setting, and an answer that meets one says so."""

from functools import partial
from typing import Any

import pytest

from app.errors import InvalidRequest
from app.retrieval import cursor
from app.retrieval.limits import Limits
from app.retrieval.plan import DiversityOptions, ExpandOptions
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import search
from app.retrieval.several import Target, search_several
from app.settings import Settings

MERGE = DiversityOptions(near_duplicates=None)


def cuts(result: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the warnings of limits, whose settings the sentences name."""
    found = [(each.code, dict(each.extra)) for each in result.warnings if each.code.endswith("_cut")]
    assert all("FOOTNOTE_MAX_" in each.detail for each in result.warnings if each.code != "list_cut")
    return found


def test_a_merged_passage_is_no_longer_than_the_setting(shelf: Any) -> None:
    shelf.put("long", *(f"leave {place} " + "word " * 10 for place in range(6)))
    for most, passages in ((60, 6), (150, 3), (6000, 1)):
        shelf.settings = Settings(max_merged_characters=most)
        result = shelf.search("leave", mode="keyword", top_k=10, diversity=MERGE)
        assert len(result.passages) == passages
        assert sum(1 + len(passage.merged) for passage in result.passages) == 6


def test_a_group_names_the_best_further_hits_and_says_where_it_is_cut(shelf: Any) -> None:
    shelf.put("one", *(f"leave rule {place}" for place in range(6)))
    shelf.settings = Settings(max_group_members=2)
    result = shelf.search("leave rule", group_by="document")
    assert [len(passage.group) for passage in result.passages] == [2]
    assert cuts(result) == [("group_cut", {"limit": 2})]
    shelf.settings = Settings(max_group_members=5)
    whole = shelf.search("leave rule", group_by="document")
    assert [len(passage.group) for passage in whole.passages] == [5]
    assert whole.passages[0].group[:2] == result.passages[0].group
    assert cuts(whole) == []


def test_a_group_on_another_page_is_no_warning_of_this_one(shelf: Any) -> None:
    shelf.put("many", *(f"leave rule {place}" for place in range(6)))
    shelf.put("best", "leave rule leave rule")
    shelf.settings = Settings(max_group_members=2)
    options = {"mode": "keyword", "group_by": "document", "top_k": 1}
    first = shelf.search("leave rule", **options)
    assert [passage.document_id for passage in first.passages] == ["best"]
    assert cuts(first) == []
    assert cuts(shelf.search("leave rule", cursor=first.next_cursor, **options)) == [("group_cut", {"limit": 2})]


def test_facets_tell_the_values_of_the_most_documents_and_say_where_they_are_cut(shelf: Any) -> None:
    for place in range(6):
        shelf.put(f"d{place}", f"leave {place}", team=min(place, 3), site="here")
    shelf.settings = Settings(max_facet_values=2)
    result = shelf.search("leave", mode="keyword", facets=("team", "site"))
    assert (result.facets["team"][0], len(result.facets["team"])) == ((3, 3), 2)
    assert result.facets["site"] == (("here", 6),)
    assert cuts(result) == [("facet_cut", {"field": "team", "limit": 2, "values": 4})]
    shelf.settings = Settings(max_facet_values=4)
    assert cuts(shelf.search("leave", mode="keyword", facets=("team", "site"))) == []


def test_facets_of_several_collections_are_cut_after_they_are_added_up(shelf: Any) -> None:
    for place, team in enumerate("aabbccc"):
        shelf.put(f"d{place}", f"leave {place}", team=team, shelf="first" if place < 4 else "second")
    plans = [
        build_plan("leave", Settings(), mode="keyword", facets=("team",), document_ids=ids, top_k=10)
        for ids in (["d0", "d1", "d2", "d4"], ["d3", "d5", "d6"])
    ]
    targets = [
        Target(name, partial(search, shelf.opened, Models(), name, plan))
        for name, plan in zip(("one", "two"), plans, strict=True)
    ]
    result = search_several(targets, 10, Limits(facet_values=2))
    assert result.facets["team"] == (("c", 3), ("a", 2))
    assert cuts(result) == [("facet_cut", {"field": "team", "limit": 2, "values": 3})]


def test_highlights_are_the_first_of_a_passage_and_say_where_they_are_cut(shelf: Any) -> None:
    shelf.put("often", "leave " * 5)
    shelf.put("once", "leave of absence")
    shelf.settings = Settings(max_highlights=3)
    result = shelf.search("leave", mode="keyword", highlight=True)
    assert {passage.document_id: len(passage.highlights) for passage in result.passages} == {"often": 3, "once": 1}
    assert cuts(result) == [("highlights_cut", {"limit": 3})]
    often = next(passage for passage in result.passages if passage.document_id == "often")
    assert [span.start for span in often.highlights] == [0, 6, 12]
    shelf.settings = Settings(max_highlights=5)
    assert cuts(shelf.search("leave", mode="keyword", highlight=True)) == []


def test_a_list_longer_than_a_cursor_carries_is_cut_and_says_so(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "MOST_HITS", 3)
    for place in range(5):
        shelf.put(f"d{place}", f"leave {place}")
    assert cuts(shelf.search("leave", mode="keyword")) == [("list_cut", {"limit": 3, "hits": 5})]
    assert cuts(shelf.search("leave", mode="keyword", document_ids=["d0", "d1", "d2"])) == []


def test_the_limits_of_a_plan_are_those_of_the_settings() -> None:
    assert Limits.of(Settings()) == Limits()
    changed = Settings(
        max_queries=6,
        max_query_terms=5,
        max_query_synonyms=7,
        max_merged_characters=1,
        max_group_members=2,
        max_facet_values=3,
        max_highlights=4,
    )
    assert build_plan("x", changed).limits == Limits(6, 5, 7, 1, 2, 3, 4)


def test_the_rarest_terms_of_a_query_are_looked_up_and_the_others_told(shelf: Any) -> None:
    shelf.put("many", *(f"common {place}" for place in range(4)))
    shelf.put("some", "seldom words", "seldom heard")
    shelf.put("one", "rare")
    shelf.settings = Settings(max_query_terms=2)
    result = shelf.search("common rare seldom unheard-of", mode="keyword", fuzzy=False)
    assert {passage.document_id for passage in result.passages} == {"some", "one"}
    assert cuts(result) == [("terms_cut", {"limit": 2, "terms": 3})]
    assert cuts(shelf.search("rare seldom unheard-of", mode="keyword", fuzzy=False)) == []


def test_more_neighbours_than_the_setting_are_an_error_that_names_it() -> None:
    few = Settings(max_neighbours=2)
    assert build_plan("x", few, expand=ExpandOptions(neighbours=2)).expand.neighbours == 2
    with pytest.raises(InvalidRequest, match="FOOTNOTE_MAX_NEIGHBOURS"):
        build_plan("x", few, expand=ExpandOptions(neighbours=3))
