"""Counts of metadata values over what a search found."""

from typing import Any


def test_values_are_counted_once_for_each_document_of_the_whole_result(shelf: Any) -> None:
    shelf.put("a", "leave one", "leave two", team="hr", tags=["x", "y"])
    shelf.put("b", "leave three", team="hr", tags=["x", "x"], level=1)
    shelf.put("c", "leave four", team="it", level=True)
    shelf.put("d", "engines", team="garage")
    facets = shelf.search("leave", mode="keyword", top_k=1, facets=("team", "tags", "level")).facets
    assert facets["team"] == (("hr", 2), ("it", 1))
    assert facets["tags"] == (("x", 2), ("y", 1))
    assert sorted(map(repr, facets["level"])) == ["(1, 1)", "(True, 1)"]


def test_a_field_that_no_document_has_is_a_warning(shelf: Any) -> None:
    shelf.put("a", "leave one", team="hr")
    result = shelf.search("leave", facets=("colour",))
    assert result.facets == {"colour": ()}
    assert [warning.code for warning in result.warnings] == ["unknown_metadata_field"]
