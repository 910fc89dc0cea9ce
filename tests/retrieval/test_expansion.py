"""What stands around a hit, as exact pieces of the document, each given once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.retrieval.arrange import Hit
from app.retrieval.expansion import expand
from app.retrieval.plan import DiversityOptions, ExpandOptions
from app.retrieval.planning import build_plan
from app.retrieval.run import Models, SearchRun
from app.retrieval.trace import Trace
from app.stores.port import Scope
from app.telemetry import StageTimer

Path = tuple[str, ...]


def put_headed(shelf: Any, texts: Sequence[str], paths: Sequence[Path]) -> None:
    """Put the document `book`, each piece under its headings."""
    store = shelf.opened.store
    real = store.replace_document

    def head(prepared: Any) -> Any:
        chunks = [replace(chunk, heading_path=path) for chunk, path in zip(prepared.chunks, paths, strict=True)]
        return real(replace(prepared, chunks=chunks))

    store.replace_document = head
    shelf.put("book", *texts)
    store.replace_document = real


@pytest.fixture
def sections(shelf: Any) -> Any:
    """The shelf with a document of six pieces under two headings."""
    texts = ("zero apples", "one pear", "two plums", "three trains", "four planes", "five ships")
    put_headed(shelf, texts, [("Leave",), ("Leave", "Parents"), ("Leave",), *[("Travel",)] * 3])
    return shelf


def contexts(shelf: Any, query: str, **options: Any) -> list[Any]:
    result = shelf.search(query, mode="keyword", expand=ExpandOptions(**options))
    for passage in result.passages:
        if passage.context.text is not None:
            assert passage.context.text == shelf.opened.store.text("book", passage.context.start, passage.context.end)
        assert passage.context.start <= passage.start
        assert passage.end <= passage.context.end
    return [passage.context for passage in result.passages]


@pytest.mark.parametrize(
    ("query", "options", "text"),
    [
        ("plums", {"neighbours": 1}, "one pear\ntwo plums\nthree trains"),
        ("apples", {"neighbours": 1}, "zero apples\none pear"),
        ("ships", {"neighbours": 2}, "three trains\nfour planes\nfive ships"),
        ("apples", {"section": True}, "zero apples\none pear\ntwo plums"),
        ("pear", {"section": True}, "one pear"),
        ("planes", {"section": True}, "three trains\nfour planes\nfive ships"),
        ("pear", {"document": True}, "zero apples\none pear\ntwo plums\nthree trains\nfour planes\nfive ships"),
    ],
)
def test_a_context_is_the_text_around_the_hit(sections: Any, query: str, options: Any, text: str) -> None:
    [context] = contexts(sections, query, **options)
    assert context.text == text
    assert not context.truncated


def test_two_hits_whose_contexts_overlap_give_them_once(sections: Any) -> None:
    first, second = contexts(sections, "plums planes", neighbours=1)
    assert first.text == "one pear\ntwo plums\nthree trains\nfour planes\nfive ships"
    assert (second.text, second.same_as) == (None, 1)


def test_a_parent_is_given_once_for_all_its_children(enhanced: Any) -> None:
    result = enhanced.search("apples pears engines", mode="keyword", expand=ExpandOptions(parent=True))
    by_text = {passage.text: passage.context for passage in result.passages}
    assert by_text["engines need oil"].text == "engines need oil\nwheels need air"
    texts = [context.text for context in by_text.values()]
    assert sorted(text for text in texts if text) == [
        "apples grow on trees\npears grow on trees",
        "engines need oil\nwheels need air",
    ]


@pytest.mark.parametrize(("most", "truncated"), [(20, True), (39, True), (40, False), (41, False)])
def test_a_parent_is_cut_at_the_longest_context_and_says_so(enhanced: Any, most: int, truncated: bool) -> None:
    for query, end in (("apples", 0), ("pears", 40)):
        options = ExpandOptions(parent=True, max_characters=most)
        [passage] = enhanced.search(query, mode="keyword", expand=options).passages
        context = passage.context
        assert context.truncated is truncated
        assert context.end - context.start == min(most, 40)
        assert context.text == enhanced.opened.store.text("fruit", context.start, context.end)
        assert end in (context.start, context.end)


def test_a_context_keeps_to_its_longest_length_around_the_hit(sections: Any) -> None:
    [context] = contexts(sections, "trains", document=True, max_characters=30)
    assert context.end - context.start == 30
    assert context.truncated
    assert "three trains" in context.text


def test_nothing_is_expanded_unless_asked(sections: Any) -> None:
    [passage] = sections.search("pear", mode="keyword").passages
    assert passage.context is None


@pytest.mark.parametrize("change", ["deleted", "replaced"])
@pytest.mark.parametrize(
    "options", [{"expand": ExpandOptions(neighbours=1)}, {"diversity": DiversityOptions(near_duplicates=None)}]
)
def test_a_document_that_changes_during_the_search_is_given_as_it_was_found(
    sections: Any, monkeypatch: pytest.MonkeyPatch, change: str, options: Any
) -> None:
    store, real = sections.opened.store, sections.opened.store.text

    def late(document_id: str, start: int, end: int) -> str:
        if change == "deleted":
            store.delete_documents([document_id])
        else:
            sections.put(document_id, "quite another text, which is long enough to reach as far as the one before")
        return str(real(document_id, start, end))

    monkeypatch.setattr(store, "text", late)
    passages = sections.search("pear plums", mode="keyword", **options).passages
    assert {passage.text for passage in passages} <= {"one pear", "two plums"}
    assert passages
    for passage in passages:
        assert passage.end - passage.start == len(passage.text)
        assert (passage.context, passage.merged) == (None, ())


def test_a_section_of_very_many_pieces_is_whole(shelf: Any) -> None:
    texts = [f"piece {number}" for number in range(260)]
    put_headed(shelf, [*texts, "other"], [*[("Long",)] * 260, ("Next",)])
    for query in ("0", "130", "259"):
        [context] = contexts(shelf, query, section=True)
        assert context.text == "\n".join(texts)
        assert not context.truncated


def test_a_section_that_goes_on_beyond_the_longest_context_is_told_to_be_cut(shelf: Any) -> None:
    put_headed(shelf, ["apples " + "x" * 12, "x" * 10, "pears"], [("Fruit",)] * 3)
    # One character less than the second piece begins at, so that the first alone would seem to be all.
    for most in range(19, 31):
        [context] = contexts(shelf, "apples", section=True, max_characters=most)
        assert (context.end - context.start, context.truncated) == (most, True)


def test_neighbours_are_those_of_a_hit_with_all_that_it_took_in(sections: Any) -> None:
    options = {"diversity": DiversityOptions(near_duplicates=None), "expand": ExpandOptions(neighbours=1)}
    [passage] = sections.search("pear plums trains", mode="keyword", **options).passages
    assert passage.context.text == "zero apples\none pear\ntwo plums\nthree trains\nfour planes"


PATHS = [(), ("A",), ("A", "B"), ("C",)]
PIECES = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(PATHS)), min_size=1, max_size=14)
KINDS = st.sampled_from([{"neighbours": 1}, {"neighbours": 3}, {"section": True}, {"document": True}])


def asked(chunks: Sequence[Any], hit: Hit, options: ExpandOptions) -> tuple[int, int]:
    """Return the whole place that is asked for, found by looking at every chunk."""
    if options.document:
        return chunks[0].start, chunks[-1].end
    inside = [hit.chunk, *hit.merged]
    first, last = min(chunk.ordinal for chunk in inside), max(chunk.ordinal for chunk in inside)
    if options.section:
        path = hit.chunk.heading_path
        first = last = hit.chunk.ordinal
        while path and first and chunks[first - 1].heading_path[: len(path)] == path:
            first -= 1
        while path and last + 1 < len(chunks) and chunks[last + 1].heading_path[: len(path)] == path:
            last += 1
    else:
        first, last = max(0, first - options.neighbours), min(len(chunks) - 1, last + options.neighbours)
    return min(hit.start, chunks[first].start), max(hit.end, chunks[last].end)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES, kind=KINDS, most=st.integers(1, 250), data=st.data())
def test_a_context_is_exact_holds_its_hit_and_is_cut_only_where_it_says_so(
    shelf: Any, pieces: Any, kind: Any, most: int, data: st.DataObject
) -> None:
    put_headed(shelf, [chr(97 + place) * size for place, (size, _) in enumerate(pieces)], [path for _, path in pieces])
    store = shelf.opened.store
    chunks = store.chunks("book", limit=100, after=None)
    options = ExpandOptions(**kind, max_characters=most)
    firsts = data.draw(st.lists(st.integers(0, len(chunks) - 1), min_size=1, max_size=3, unique=True))
    hits = []
    for first in firsts:
        merged = chunks[first + 1 : first + 1 + data.draw(st.integers(0, 2))]
        inside = [chunks[first], *merged]
        hits.append(Hit(chunks[first], 1.0, 0, inside[0].start, inside[-1].end, merged=merged))
    plan = build_plan("x", shelf.settings, expand=options)
    run = SearchRun(shelf.opened, Models(), plan, Scope(None, None), StageTimer(), Trace(wanted=False))
    whole = store.text("book", 0, None)

    found = expand(run, hits, 1)

    for rank, (hit, context) in enumerate(zip(hits, found, strict=True), start=1):
        start, end = asked(chunks, hit, options)
        longest = max(most, hit.end - hit.start)
        assert context.truncated == (end - start > longest)
        assert context.start <= hit.start < hit.end <= context.end
        assert context.truncated or (context.start <= start and end <= context.end)
        assert context.end - context.start <= max(most, *(each.end - each.start for each in hits))
        if context.same_as is None:
            assert context.text == whole[context.start : context.end]
        else:
            other = found[context.same_as - 1]
            assert context.same_as < rank
            assert (context.text, context.start, context.end) == (None, other.start, other.end)
        if context.truncated and context.same_as is None:
            assert context.end - context.start >= longest
