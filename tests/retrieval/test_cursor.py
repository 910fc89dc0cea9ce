"""Pages of a search: each hit once, whatever is added, and nothing that the search may not see."""

import base64
import zlib
from typing import Any

import pytest

from app.errors import InvalidCursor
from app.filters import Condition, Operator
from app.retrieval.plan import DiversityOptions


@pytest.fixture
def twelve(shelf: Any) -> Any:
    """The shelf with twelve documents of one word in common."""
    for place in range(12):
        shelf.put(f"d{place:02}", f"leave rule {place} " + "word " * place, team="hr" if place % 2 else "it")
    return shelf


def pages(shelf: Any, query: str, size: int = 5, **options: Any) -> list[list[Any]]:
    cursor, found = None, []
    while not found or cursor:
        result = shelf.search(query, top_k=size, cursor=cursor, **options)
        found.append(list(result.passages))
        cursor = result.next_cursor
    return found


@pytest.mark.parametrize(
    "options",
    [{"mode": "keyword"}, {"mode": "dense"}, {}, {"max_per_document": 1}, {"diversity": DiversityOptions()}],
)
def test_the_pages_together_are_the_whole_list(twelve: Any, options: Any) -> None:
    whole = twelve.search("leave rule", top_k=12, **options).passages
    paged = [passage for page in pages(twelve, "leave rule", **options) for passage in page]
    assert [passage.chunk_id for passage in paged] == [passage.chunk_id for passage in whole]
    assert [passage.rank for passage in paged] == list(range(1, len(whole) + 1))
    assert [(p.score, p.fused, p.legs) for p in paged] == [(p.score, p.fused, p.legs) for p in whole]


def test_a_second_page_stays_the_same_while_documents_are_added(twelve: Any) -> None:
    first = twelve.search("leave rule", top_k=5)
    before = twelve.search("leave rule", top_k=5, cursor=first.next_cursor)
    for place in range(20):
        twelve.put(f"new-{place}", "leave rule leave rule")
    after = twelve.search("leave rule", top_k=5, cursor=first.next_cursor)
    assert [p.chunk_id for p in after.passages] == [p.chunk_id for p in before.passages]


def test_a_deleted_hit_gives_its_place_to_the_next(twelve: Any) -> None:
    first = twelve.search("leave rule", top_k=5)
    before = twelve.search("leave rule", top_k=5, cursor=first.next_cursor)
    twelve.opened.store.delete_documents([before.passages[0].document_id])
    after = twelve.search("leave rule", top_k=5, cursor=first.next_cursor)
    assert [p.document_id for p in after.passages][:4] == [p.document_id for p in before.passages][1:]


def test_a_cursor_shows_nothing_that_its_search_may_not_see(twelve: Any) -> None:
    """A cursor is the caller's: one with chunks of another search in it must not widen a key's filter."""
    hr = Condition("team", Operator.EQ, "hr")
    allowed = twelve.search("leave rule", top_k=2, forced_filter=hr)
    wide = twelve.search("leave rule", top_k=2)
    head_of_allowed, columns_of_wide = unpack(allowed.next_cursor)[0], unpack(wide.next_cursor)[1]
    count = len(unpack(allowed.next_cursor)[1]) * 12 // len(columns_of_wide)
    assert count < 12
    forged = pack(head_of_allowed.replace(f", {count},".encode(), b", 12,"), columns_of_wide)
    result = twelve.search("leave rule", top_k=12, forced_filter=hr, cursor=forged)
    assert result.passages
    assert {passage.metadata["team"] for passage in result.passages} == {"hr"}


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "é", "=" * 100, base64.urlsafe_b64encode(b"x" * 500).decode()])
def test_what_no_search_gave_is_an_error(twelve: Any, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        twelve.search("leave rule", cursor=cursor)


def test_a_cursor_of_another_search_is_an_error(twelve: Any) -> None:
    first = twelve.search("leave rule", top_k=5)
    with pytest.raises(InvalidCursor):
        twelve.search("other words", top_k=5, cursor=first.next_cursor)
    with pytest.raises(InvalidCursor):
        twelve.search("leave rule", top_k=5, max_per_document=1, cursor=first.next_cursor)


def unpack(cursor: str) -> tuple[bytes, bytes]:
    data = zlib.decompress(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    length = int.from_bytes(data[:2], "little")
    return data[2 : 2 + length], data[2 + length :]


def pack(head: bytes, columns: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(len(head).to_bytes(2, "little") + head + columns)).decode()
