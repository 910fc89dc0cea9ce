"""What stands around a hit, as exact pieces of the document, each given once."""

from dataclasses import replace
from typing import Any

import pytest

from app.retrieval.plan import DiversityOptions, ExpandOptions


@pytest.fixture
def sections(shelf: Any) -> Any:
    """The shelf with a document of six pieces under two headings."""
    store = shelf.opened.store
    real = store.replace_document

    def head(prepared: Any) -> Any:
        paths = [("Leave",), ("Leave", "Parents"), ("Leave",), ("Travel",), ("Travel",), ("Travel",)]
        chunks = [replace(chunk, heading_path=path) for chunk, path in zip(prepared.chunks, paths, strict=True)]
        return real(replace(prepared, chunks=chunks))

    store.replace_document = head
    shelf.put("book", "zero apples", "one pear", "two plums", "three trains", "four planes", "five ships")
    store.replace_document = real
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
