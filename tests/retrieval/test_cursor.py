"""Pages of a search: each hit once, whatever is added, and nothing that the search may not see."""

import base64
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from app.api.schemas.search_options import SearchOptions
from app.errors import InvalidCursor
from app.filters import Condition, Operator
from app.indexes.port import NO_RESTRICTION, Candidates
from app.retrieval.cursor import MOST_HITS, PageStart, encode_cursor
from app.retrieval.plan import DiversityOptions, RerankOptions
from app.retrieval.planning import build_plan
from app.retrieval.ranking import Ranking
from app.retrieval.run import Models
from app.retrieval.scored import LegColumn, Scored
from app.retrieval.search import search
from app.settings import Settings


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
    [
        {"mode": "keyword"},
        {"mode": "dense"},
        {},
        {"max_per_document": 1},
        {"diversity": DiversityOptions()},
        {"rerank": RerankOptions("lexical")},
        {"rerank": RerankOptions("lexical"), "mode": "dense"},
    ],
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


@pytest.mark.parametrize("options", [{"max_per_document": 1}, {"mode": "keyword"}])
def test_a_hit_that_is_deleted_between_pages_hides_no_other(twelve: Any, options: Any) -> None:
    first = twelve.search("leave rule", top_k=5, **options)
    before = twelve.search("leave rule", top_k=5, cursor=first.next_cursor, **options)
    twelve.opened.store.delete_documents([first.passages[0].document_id])
    after = twelve.search("leave rule", top_k=5, cursor=first.next_cursor, **options)
    assert [(p.rank, p.chunk_id) for p in after.passages] == [(p.rank, p.chunk_id) for p in before.passages]


def test_ranks_go_on_where_a_hit_was_gone_on_the_first_page(twelve: Any) -> None:
    whole = twelve.search("leave rule", top_k=1)
    assert whole.next_cursor
    second = twelve.search("leave rule", top_k=1, cursor=whole.next_cursor).passages[0]
    twelve.opened.store.delete_documents([second.document_id])
    page = twelve.search("leave rule", top_k=2, cursor=whole.next_cursor)
    following = twelve.search("leave rule", top_k=2, cursor=page.next_cursor)
    assert [p.rank for p in (*page.passages, *following.passages)] == [2, 3, 4, 5]


def test_a_search_lists_no_more_hits_than_a_cursor_holds(twelve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.retrieval.cursor.MOST_HITS", 7)
    assert [len(page) for page in pages(twelve, "leave rule")] == [5, 2]


def test_a_cursor_of_as_many_hits_as_a_search_lists_fits_into_a_request() -> None:
    random = np.random.default_rng(7)
    column = LegColumn(random.random(MOST_HITS, np.float32), random.permutation(MOST_HITS).astype(np.uint16))
    keys = random.integers(0, 2**50, MOST_HITS)
    ranking = Ranking(Candidates(keys, random.random(MOST_HITS, np.float32)), "relative")
    scored = Scored(ranking, random.random(MOST_HITS, np.float32), {"dense": column, "keyword": column})
    run = Mock(plan=build_plan("leave", Settings()), restriction=NO_RESTRICTION)
    cursor = encode_cursor(run, "shelf", scored, PageStart(MOST_HITS - 1, MOST_HITS - 1))
    assert SearchOptions(cursor=cursor).cursor == cursor


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


def test_a_cursor_of_the_same_words_without_their_quotes_is_an_error(twelve: Any) -> None:
    first = twelve.search('"leave rule"', top_k=5, query_syntax="simple")
    with pytest.raises(InvalidCursor):
        twelve.search("leave rule", top_k=5, query_syntax="simple", cursor=first.next_cursor)


def test_a_cursor_of_another_collection_is_an_error(twelve: Any) -> None:
    first = twelve.search("leave rule", top_k=5)
    plan = build_plan("leave rule", twelve.settings, top_k=5, cursor=first.next_cursor)
    with pytest.raises(InvalidCursor):
        search(twelve.opened, Models(twelve.embedder), "another", plan)


@pytest.mark.parametrize(
    ("part", "forged"),
    [
        (None, b"[" * 60_000),
        (", 12, [", b", 1" + b"0" * 30 + b", ["),
        (", 5, 5, ", b", 5, 1" + b"0" * 30 + b", "),
    ],
)
def test_a_forged_head_is_an_error(twelve: Any, part: str | None, forged: bytes) -> None:
    head, columns = unpack(twelve.search("leave rule", top_k=5).next_cursor)
    assert part is None or part.encode() in head
    head = forged if part is None else head.replace(part.encode(), forged)
    with pytest.raises(InvalidCursor):
        twelve.search("leave rule", top_k=5, cursor=pack(head, columns))


def test_a_cursor_with_more_or_less_than_its_columns_is_an_error(twelve: Any) -> None:
    head, columns = unpack(twelve.search("leave rule", top_k=5).next_cursor)
    for forged in (columns + b"more", columns[:-1], b""):
        with pytest.raises(InvalidCursor):
            twelve.search("leave rule", top_k=5, cursor=pack(head, forged))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("begins", [12 * 8, 12 * 12], ids=["scores", "a leg"])
def test_a_score_that_is_no_number_is_an_error(twelve: Any, begins: int, value: float) -> None:
    head, columns = unpack(twelve.search("leave rule", top_k=5).next_cursor)
    forged = columns[:begins] + np.float32(value).tobytes() + columns[begins + 4 :]
    with pytest.raises(InvalidCursor):
        twelve.search("leave rule", top_k=5, cursor=pack(head, forged))


def unpack(cursor: str) -> tuple[bytes, bytes]:
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    length = int.from_bytes(data[:2], "little")
    return data[2 : 2 + length], data[2 + length :]


def pack(head: bytes, columns: bytes) -> str:
    return base64.urlsafe_b64encode(len(head).to_bytes(2, "little") + head + columns).decode()
