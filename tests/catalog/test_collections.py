import threading
from typing import Any

import pytest
from sqlalchemy import func, select

from app.catalog.api_keys import ApiKeys
from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.idempotency import Idempotency
from app.catalog.jobs import Jobs
from app.catalog.principal import Role
from app.catalog.tables import idempotency_keys
from app.errors import InvalidRequest, NameTaken, NotFound, Unauthenticated


def test_a_collection_is_found_by_name_and_by_id(collections: Collections) -> None:
    settings = {"embedding": {"model": "hashed"}, "chunking": {"size": 500}, "metadata_fields": ["team"]}
    made = collections.create("handbook", title="Handbook", description="All of it", settings=settings)
    assert made.id.startswith("col_")
    assert collections.get("handbook") == collections.by_id(made.id) == made
    assert made.settings == settings
    assert collections.get("recipes") is None
    assert collections.by_id("col_0") is None


@pytest.mark.parametrize("name", ["", "Handbook", "-a", "_a", "a b", "a/b", "ä", "a\n", "a" * 64, "../a"])
def test_a_name_that_is_no_slug_is_refused(collections: Collections, name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        collections.create(name, settings={})
    assert refused.value.errors[0].pointer == "path:collection"


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "a" * 63])
def test_a_slug_is_accepted(collections: Collections, name: str) -> None:
    assert collections.create(name, settings={}).name == name


def test_a_name_is_given_once(collections: Collections) -> None:
    first = collections.create("handbook", settings={})
    with pytest.raises(NameTaken):
        collections.create("handbook", settings={"embedding": {"model": "another"}})
    assert collections.get("handbook") == first


def test_an_update_replaces_what_may_change(collections: Collections, clock: Any) -> None:
    made = collections.create("handbook", title="Old", settings={"indexing": "standard"})
    clock.pass_time(60)
    changed = collections.update(made, title=None, description="new", settings={"indexing": "enhanced"})
    assert collections.get("handbook") == changed
    assert (changed.id, changed.title, changed.description) == (made.id, None, "new")
    assert changed.settings == {"indexing": "enhanced"}
    assert changed.updated_at > changed.created_at == made.created_at
    collections.delete("handbook")
    collections.create("handbook", settings={})
    with pytest.raises(NotFound):
        collections.update(made, title=None, description=None, settings={})


def test_an_update_leaves_what_another_writer_changed_meanwhile(collections: Collections) -> None:
    settings = {"embedding": {"model": "before"}, "quotas": {}, "indexing": "standard"}
    read = collections.create("handbook", title="Handbook", settings=settings)
    collections.set_embedding_model(read.id, "after")
    collections.update(read, title="Rules", description=None, settings=settings | {"quotas": {"documents": 2}})
    changed = collections.update(
        read, title="Handbook", description="new", settings=settings | {"indexing": "enhanced"}
    )
    assert collections.get("handbook") == changed
    assert (changed.title, changed.description) == ("Rules", "new")
    assert changed.settings == {"embedding": {"model": "after"}, "quotas": {"documents": 2}, "indexing": "enhanced"}


def test_every_collection_is_given_once_over_all_pages(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.catalog.collections._PAGE", 2)
    names = [collections.create(name, settings={}).name for name in "abcde"]
    assert sorted(found.name for found in collections.every()) == names


def test_a_list_shows_only_the_ids_asked_for(collections: Collections) -> None:
    a, b, c = (collections.create(name, settings={}) for name in "abc")
    everything, _ = collections.list(limit=10)
    assert {found.name for found in everything} == {"a", "b", "c"}
    some, _ = collections.list(ids=frozenset({a.id, c.id}), limit=10)
    assert {found.id for found in some} == {a.id, c.id}
    assert b.id not in {found.id for found in some}
    assert collections.list(ids=[], limit=10) == ([], None)


def test_a_deleted_collection_takes_its_keys_jobs_and_requests_with_it(
    collections: Collections, api_keys: ApiKeys, jobs: Jobs, database: Database
) -> None:
    handbook = collections.create("handbook", settings={})
    recipes = collections.create("recipes", settings={})
    only, only_secret = api_keys.create("only", [handbook.id], Role.OWNER)
    both, both_secret = api_keys.create("both", [handbook.id, recipes.id], Role.SEARCH)
    job = jobs.enqueue("rebuild", collection_id=handbook.id, collection="handbook", document_id=None, payload={})
    kept = jobs.enqueue("rebuild", collection_id=recipes.id, collection="recipes", document_id=None, payload={})
    Idempotency(database, hours=24).begin("key/POST", "k1", "f", collection_id=handbook.id)

    assert collections.delete("handbook") == handbook

    assert collections.get("handbook") is None
    assert api_keys.get(only.id) is None
    with pytest.raises(Unauthenticated):
        api_keys.authenticate(only_secret)
    assert api_keys.authenticate(both_secret).collection_ids == {recipes.id}
    assert api_keys.get(both.id) is not None
    assert jobs.get(job.id) is None
    assert jobs.get(kept.id) == kept
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(idempotency_keys)).scalar_one() == 0
    assert collections.delete("handbook") is None


def test_the_same_name_again_is_another_collection(collections: Collections, api_keys: ApiKeys) -> None:
    first = collections.create("handbook", settings={})
    other = collections.create("recipes", settings={})
    _, secret = api_keys.create("both", [first.id, other.id], Role.OWNER)
    collections.delete("handbook")
    second = collections.create("handbook", settings={})
    assert second.id != first.id
    assert not api_keys.authenticate(secret).may_see(second.id)


def test_a_collection_whose_folder_cannot_be_put_in_place_or_taken_away_stays_as_it_was(
    collections: Collections,
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        collections.create("handbook", settings={}, put_in_place=fail)
    assert collections.get("handbook") is None
    made = collections.create("handbook", settings={})
    with pytest.raises(OSError, match="no"):
        collections.delete("handbook", fail)
    assert collections.get("handbook") == made


def test_nothing_is_added_while_the_ids_are_used(collections: Collections) -> None:
    made = collections.create("handbook", settings={})
    adding = threading.Thread(target=collections.create, args=("recipes",), kwargs={"settings": {}})
    with collections.unchanging() as ids:
        adding.start()
        adding.join(0.05)
        assert collections.get("recipes") is None
        assert ids == {made.id}
    adding.join(10)
    assert collections.get("recipes") is not None


def test_a_collection_is_remembered_as_it_is(collections: Collections) -> None:
    assert collections.remembered("handbook") is None
    collections.create("handbook", settings={})
    assert collections.remembered("handbook") is None
    made = collections.get("handbook")
    assert collections.remembered("handbook") == made
    collections.delete("handbook")
    assert collections.remembered("handbook") is None
    assert collections.get("handbook") is None
    again = collections.create("handbook", settings={})
    assert collections.get("handbook") == again != made
    assert collections.remembered("handbook") == again
