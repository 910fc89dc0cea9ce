"""Where the words of a query stand: by the same terms as the keyword leg looked up, read once."""

from typing import Any
from unittest.mock import Mock

import pytest

from app.retrieval import highlights, keyword
from app.retrieval.query_terms import read_terms


@pytest.mark.parametrize(
    ("options", "by_leg", "by_highlights"),
    [({"mode": "keyword"}, 2, 0), ({}, 2, 0), ({"mode": "dense"}, 0, 2)],
    ids=["keyword", "hybrid", "dense"],
)
def test_each_query_s_terms_are_read_once(
    shelf: Any, monkeypatch: pytest.MonkeyPatch, options: Any, by_leg: int, by_highlights: int
) -> None:
    shelf.put("a", "parental leave", "engines need oil")
    counted = {module: Mock(side_effect=read_terms) for module in (keyword, highlights)}
    for module, reading in counted.items():
        monkeypatch.setattr(module, "read_terms", reading)
    passages = shelf.search("leave", queries=("engines",), highlight=True, **options).passages
    words = {
        passage.text[span.start - passage.start : span.end - passage.start]
        for passage in passages
        for span in passage.highlights
    }
    assert words == {"leave", "engines"}
    assert counted[keyword].call_count == by_leg
    assert counted[highlights].call_count == by_highlights
