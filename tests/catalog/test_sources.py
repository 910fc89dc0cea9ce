"""Sources are fetched again when it is time, by one process, less often while they fail."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.sources import CLAIM_SECONDS, LONGEST_BACKOFF_SECONDS, Source, Sources, SourceStatus
from app.errors import NotFound

URL = "https://site.example/a"
HOUR = 3600


@pytest.fixture
def sources(database: Database, clock: Any) -> Sources:
    return Sources(database, clock=clock)


def put(sources: Sources, collection: Collection, document_id: str = "a", url: str = URL, **more: Any) -> Source:
    given = {"metadata": {"team": "hr"}, "refresh_seconds": HOUR, **more}
    return sources.put(collection.id, document_id, url, **given)


def known(sources: Sources, source: Source) -> Source:
    found = sources.get(source.collection_id, source.id)
    assert found is not None
    return found


def succeed(sources: Sources, source: Source, content_hash: str = "h1") -> Source:
    sources.succeeded(source, etag='"1"', last_modified=None, content_hash=content_hash)
    return known(sources, source)


def test_a_source_names_its_document_and_waits(sources: Sources, handbook: Collection, clock: Any) -> None:
    made = put(sources, handbook)
    assert (made.url, made.document_id, made.metadata, made.status) == (URL, "a", {"team": "hr"}, "pending")
    assert made.next_at is not None
    assert (made.next_at - clock.now).total_seconds() == HOUR
    assert sources.of_document(handbook.id, "a") == known(sources, made) == made


def test_the_same_url_keeps_what_is_known_of_it_and_another_does_not(sources: Sources, handbook: Collection) -> None:
    first = succeed(sources, put(sources, handbook))
    again = put(sources, handbook, metadata={}, refresh_seconds=None)
    assert (again.id, again.etag, again.content_hash, again.next_at) == (first.id, '"1"', "h1", None)
    other = put(sources, handbook, url="https://site.example/b")
    assert (other.id, other.etag, other.content_hash, other.fetched_at) == (first.id, None, None, None)


def test_of_a_collection_s_sources_another_sees_nothing(
    sources: Sources, handbook: Collection, recipes: Collection
) -> None:
    made = put(sources, handbook)
    assert sources.get(recipes.id, made.id) is None
    assert sources.list(recipes.id, limit=10) == ([], None)
    assert not sources.delete(recipes.id, made.id)
    assert sources.forget_documents(recipes.id, ["a"]) == 0
    assert sources.delete(handbook.id, made.id)
    assert sources.get(handbook.id, made.id) is None


def test_lists_come_in_pages_newest_first(sources: Sources, handbook: Collection, clock: Any) -> None:
    for number in range(3):
        put(sources, handbook, f"d{number}")
        clock.pass_time(1)
    page, cursor = sources.list(handbook.id, limit=2)
    rest, end = sources.list(handbook.id, limit=2, cursor=cursor)
    assert [source.document_id for source in [*page, *rest]] == ["d2", "d1", "d0"]
    assert end is None


def test_sources_go_with_their_document_and_with_their_collection(
    sources: Sources, collections: Collections, handbook: Collection
) -> None:
    first, second = put(sources, handbook, "a"), put(sources, handbook, "b")
    assert sources.forget_documents(handbook.id, ["a", "never"]) == 1
    assert sources.get(handbook.id, first.id) is None
    collections.delete(handbook.name)
    assert sources.get(handbook.id, second.id) is None
    with pytest.raises(NotFound):
        put(sources, handbook)


def test_sources_of_more_documents_than_one_statement_names_are_forgotten(
    sources: Sources, handbook: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.catalog.sources._BATCH", 2)
    stays = put(sources, handbook, "stays")
    ids = [put(sources, handbook, name).document_id for name in "abcde"]
    assert sources.forget_documents(handbook.id, ids) == 5
    assert sources.list(handbook.id, limit=10)[0] == [stays]


def test_a_source_that_is_due_is_claimed_by_one_process_once(
    sources: Sources, handbook: Collection, clock: Any, tmp_path: Path
) -> None:
    put(sources, handbook, "b", refresh_seconds=None)
    made = put(sources, handbook)
    assert sources.claim_due(10) == []
    clock.pass_time(HOUR)
    databases = [Database(tmp_path / "catalog.db") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        claims = list(pool.map(lambda database: Sources(database, clock=clock).claim_due(10), databases))
    for database in databases:
        database.close()
    assert [source.id for claim in claims for source in claim] == [made.id]


def test_a_claim_that_came_to_nothing_is_made_again(sources: Sources, handbook: Collection, clock: Any) -> None:
    put(sources, handbook)
    clock.pass_time(HOUR)
    assert len(sources.claim_due(10)) == 1
    clock.pass_time(CLAIM_SECONDS - 1)
    assert sources.claim_due(10) == []
    clock.pass_time(1)
    assert len(sources.claim_due(10)) == 1


def test_a_success_is_due_again_after_its_interval(sources: Sources, handbook: Collection, clock: Any) -> None:
    made = put(sources, handbook)
    ended = succeed(sources, made)
    assert (ended.status, ended.failures, ended.fetched_at, ended.changed_at) == ("ok", 0, clock.now, clock.now)
    assert ended.next_at is not None
    assert 0.9 * HOUR <= (ended.next_at - clock.now).total_seconds() <= HOUR
    changed_at = clock.now
    clock.pass_time(60)
    same = succeed(sources, ended)
    assert (same.fetched_at, same.changed_at) == (clock.now, changed_at)
    assert succeed(sources, same, "h2").changed_at == clock.now


def test_each_failure_doubles_the_wait_up_to_a_day(sources: Sources, handbook: Collection, clock: Any) -> None:
    source = succeed(sources, put(sources, handbook))
    waits = []
    for _ in range(8):
        sources.failed(source, {"code": "fetch_failed"}, is_gone=False)
        source = known(sources, source)
        assert source.next_at is not None
        waits.append((source.next_at - clock.now).total_seconds())
    for wait, longest in zip(
        waits, [2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, *[LONGEST_BACKOFF_SECONDS] * 4], strict=True
    ):
        assert 0.9 * longest <= wait <= longest
    assert (source.status, source.failures, source.error) == ("failed", 8, {"code": "fetch_failed"})
    assert source.etag == '"1"'
    assert succeed(sources, source).error is None


def test_a_server_that_names_a_time_is_not_asked_before(sources: Sources, handbook: Collection, clock: Any) -> None:
    source = put(sources, handbook, refresh_seconds=60)
    sources.failed(source, {}, is_gone=False, retry_after=10_000)
    assert (known(sources, source).next_at - clock.now).total_seconds() == 10_000


def test_what_is_gone_says_so(sources: Sources, handbook: Collection) -> None:
    source = put(sources, handbook, refresh_seconds=None)
    sources.failed(source, {}, is_gone=True)
    assert (known(sources, source).status, known(sources, source).next_at) == (SourceStatus.GONE, None)


def test_what_came_of_a_url_is_not_noted_of_the_next(sources: Sources, handbook: Collection) -> None:
    old = put(sources, handbook)
    new = put(sources, handbook, url="https://site.example/b")
    assert succeed(sources, old) == new
