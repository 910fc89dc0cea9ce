"""Events wait for their webhooks, are claimed by one process at a time, and leave in peace who does not answer."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.webhook import Delivery, Event, Webhook
from app.catalog.webhooks import Webhooks
from app.errors import Conflict, NotFound

READY, FINISHED = "document.ready", "job.finished"
LEASE = 40


@pytest.fixture
def webhooks(database: Database, clock: Any) -> Webhooks:
    return Webhooks(database, clock=clock)


@pytest.fixture
def webhook(webhooks: Webhooks, handbook: Collection) -> Webhook:
    return webhooks.create(handbook.id, "https://hooks.example/", [READY])


def announce(webhooks: Webhooks, database: Database, collection: Collection, *names: str) -> None:
    with database.write() as connection:
        webhooks.announce(connection, collection.id, [Event(name, {"n": number}) for number, name in enumerate(names)])


def claimed(webhooks: Webhooks, owner: str = "us") -> Delivery:
    claim = webhooks.claim(owner, LEASE)
    assert claim is not None
    return claim[0]


def only(webhooks: Webhooks, webhook: Webhook) -> Delivery:
    (delivery,), _ = webhooks.deliveries(webhook.id, limit=10)
    return delivery


def test_each_webhook_has_a_secret_of_its_own_that_is_not_shown(webhooks: Webhooks, handbook: Collection) -> None:
    one, two = (webhooks.create(handbook.id, "https://hooks.example/", [READY]) for _ in range(2))
    assert one.secret != two.secret
    assert len(one.secret) > 40
    assert one.secret not in repr(one)


def test_a_collection_has_so_many_webhooks_and_another_its_own(
    database: Database, handbook: Collection, recipes: Collection
) -> None:
    webhooks = Webhooks(database, most=3)
    made = [webhooks.create(handbook.id, "https://hooks.example/", [READY]) for _ in range(3)]
    with pytest.raises(Conflict) as refused:
        webhooks.create(handbook.id, "https://hooks.example/", [READY])
    assert refused.value.code == "too_many_webhooks"
    assert "FOOTNOTE_MAX_WEBHOOKS" in refused.value.detail
    assert webhooks.create(recipes.id, "https://hooks.example/", [READY]).active
    webhooks.delete(handbook.id, made[0].id)
    assert webhooks.create(handbook.id, "https://hooks.example/", [READY]).active


def test_an_event_waits_for_each_webhook_that_takes_it(
    webhooks: Webhooks, database: Database, handbook: Collection, recipes: Collection, webhook: Webhook
) -> None:
    both = webhooks.create(handbook.id, "https://hooks.example/2", [READY, FINISHED])
    other = webhooks.create(recipes.id, "https://hooks.example/3", [READY])
    announce(webhooks, database, handbook, READY, FINISHED)
    assert only(webhooks, webhook).payload == {
        "id": only(webhooks, webhook).payload["id"],
        "event": READY,
        "created_at": "2030-01-01T00:00:00Z",
        "collection": "handbook",
        "data": {"n": 0},
    }
    deliveries, _ = webhooks.deliveries(both.id, limit=10)
    assert {delivery.event for delivery in deliveries} == {READY, FINISHED}
    assert only(webhooks, webhook).payload["id"] in {delivery.payload["id"] for delivery in deliveries}
    assert webhooks.deliveries(other.id, limit=10) == ([], None)


def test_what_is_rolled_back_is_not_announced(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook
) -> None:
    def fail() -> None:
        with database.write() as connection:
            webhooks.announce(connection, handbook.id, [Event(READY, {})])
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert webhooks.claim("us", LEASE) is None


def test_several_processes_never_make_the_same_attempt(
    webhooks: Webhooks, database: Database, handbook: Collection, clock: Any, tmp_path: Path
) -> None:
    for _ in range(5):
        webhooks.create(handbook.id, "https://hooks.example/", [READY])
    announce(webhooks, database, handbook, READY, READY)
    databases = [Database(tmp_path / "catalog.db") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda other: Webhooks(other, clock=clock).claim(str(id(other)), LEASE), databases))
    for other in databases:
        other.close()
    ids = [claim[0].id for claim in claims if claim is not None]
    assert len(ids) == len(set(ids)) == 5


def test_an_attempt_whose_process_died_is_made_again_after_its_lease(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, READY)
    lost = claimed(webhooks, "dead")
    clock.pass_time(LEASE - 1)
    assert webhooks.claim("us", LEASE) is None
    clock.pass_time(1)
    again = claimed(webhooks)
    assert (again.id, again.attempts) == (lost.id, 2)
    webhooks.delivered(lost, 200)
    assert only(webhooks, webhook).state == "pending"
    webhooks.delivered(again, 204)
    ended = only(webhooks, webhook)
    assert (ended.state, ended.status, ended.delivered_at, ended.next_at) == ("delivered", 204, clock.now, None)


def test_a_failed_attempt_is_made_again_after_the_pause_until_the_last(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, READY)
    webhooks.failed(claimed(webhooks), status=500, error="the receiver answered 500", pause_seconds=60)
    waiting = only(webhooks, webhook)
    assert (waiting.state, waiting.status, waiting.error) == ("pending", 500, "the receiver answered 500")
    clock.pass_time(59)
    assert webhooks.claim("us", LEASE) is None
    clock.pass_time(1)
    webhooks.failed(claimed(webhooks), status=None, error="no answer", pause_seconds=None)
    ended = only(webhooks, webhook)
    assert (ended.state, ended.attempts, ended.status, ended.next_at) == ("failed", 2, None, None)
    clock.pass_time(10_000)
    assert webhooks.claim("us", LEASE) is None


def test_a_webhook_that_is_down_rests_as_a_whole_and_holds_up_no_other(
    webhooks: Webhooks, database: Database, handbook: Collection, recipes: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, READY, READY)
    clock.pass_time(1)
    healthy = webhooks.create(recipes.id, "https://other.example/", [READY])
    announce(webhooks, database, recipes, READY)
    webhooks.failed(claimed(webhooks), status=None, error="no answer", pause_seconds=60)
    other = claimed(webhooks)
    assert other.webhook_id == healthy.id
    webhooks.delivered(other, 200)
    assert webhooks.claim("us", LEASE) is None
    clock.pass_time(60)
    assert claimed(webhooks).webhook_id == webhook.id


def test_a_webhook_gets_its_events_one_at_a_time_and_in_order(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, READY)
    clock.pass_time(1)
    announce(webhooks, database, handbook, FINISHED, READY)
    first = claimed(webhooks, "a")
    assert first.payload["data"] == {"n": 0}
    assert webhooks.claim("b", LEASE) is None
    webhooks.delivered(first, 200)
    assert claimed(webhooks, "b").payload["data"] == {"n": 1}


def test_collections_take_turns_whatever_waits_for_one(
    webhooks: Webhooks, database: Database, handbook: Collection, recipes: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, *[READY] * 20)
    clock.pass_time(1)
    later = webhooks.create(recipes.id, "https://other.example/", [READY])
    announce(webhooks, database, recipes, *[READY] * 3)
    served = []
    for _ in range(8):
        delivery = claimed(webhooks)
        served.append(delivery.webhook_id)
        webhooks.delivered(delivery, 200)
    assert served == [webhook.id, later.id] * 3 + [webhook.id] * 2


def test_receivers_of_one_collection_that_do_not_answer_leave_a_place_for_others(
    webhooks: Webhooks, database: Database, handbook: Collection, recipes: Collection, clock: Any
) -> None:
    for _ in range(5):
        webhooks.create(handbook.id, "https://slow.example/", [READY])
    announce(webhooks, database, handbook, READY)
    for _ in range(3):
        assert webhooks.claim("us", LEASE, most_of_one=3) is not None
    assert webhooks.claim("us", LEASE, most_of_one=3) is None
    other = webhooks.create(recipes.id, "https://other.example/", [READY])
    announce(webhooks, database, recipes, READY)
    claim = webhooks.claim("us", LEASE, most_of_one=3)
    assert claim is not None
    assert claim[1].id == other.id
    # Another process has places of its own.
    assert webhooks.claim("them", LEASE, most_of_one=3) is not None


def test_a_receiver_that_is_gone_gets_nothing_any_more(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook
) -> None:
    announce(webhooks, database, handbook, READY)
    webhooks.deactivate(webhook.id)
    announce(webhooks, database, handbook, READY)
    assert only(webhooks, webhook).state == "failed"
    assert webhooks.claim("us", LEASE) is None
    assert [found.active for found in webhooks.list(handbook.id, limit=10)[0]] == [False]


def test_of_another_collection_s_webhooks_nothing_is_seen(
    webhooks: Webhooks, recipes: Collection, webhook: Webhook
) -> None:
    assert webhooks.get(recipes.id, webhook.id) is None
    assert not webhooks.delete(recipes.id, webhook.id)
    assert webhooks.list(recipes.id, limit=10) == ([], None)


def test_deliveries_go_with_their_webhook_and_webhooks_with_their_collection(
    webhooks: Webhooks, database: Database, collections: Collections, handbook: Collection, webhook: Webhook
) -> None:
    announce(webhooks, database, handbook, READY)
    assert webhooks.delete(handbook.id, webhook.id)
    assert webhooks.claim("us", LEASE) is None
    with pytest.raises(NotFound):
        webhooks.ping(webhook, "handbook", Event("ping", {}))
    kept = webhooks.create(handbook.id, "https://hooks.example/", [READY])
    announce(webhooks, database, handbook, READY)
    collections.delete("handbook")
    assert webhooks.claim("us", LEASE) is None
    assert webhooks.get(handbook.id, kept.id) is None
    with pytest.raises(NotFound):
        webhooks.create(handbook.id, "https://hooks.example/", [READY])


def test_a_ping_comes_whatever_a_webhook_takes(webhooks: Webhooks, webhook: Webhook) -> None:
    queued = webhooks.ping(webhook, "handbook", Event("ping", {}))
    assert (queued.event, queued.payload["collection"], queued.state) == ("ping", "handbook", "pending")
    assert claimed(webhooks).id == queued.id


def test_old_deliveries_are_forgotten_once_they_have_ended(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook, clock: Any
) -> None:
    announce(webhooks, database, handbook, READY, READY)
    webhooks.delivered(claimed(webhooks), 200)
    assert webhooks.remove_ended(clock.now) == 0
    clock.pass_time(1)
    assert webhooks.remove_ended(clock.now) == 1
    assert only(webhooks, webhook).state == "pending"


def test_deliveries_are_listed_by_state_in_pages(
    webhooks: Webhooks, database: Database, handbook: Collection, webhook: Webhook, clock: Any
) -> None:
    for _ in range(3):
        announce(webhooks, database, handbook, READY)
        clock.pass_time(1)
    first = claimed(webhooks)
    webhooks.delivered(first, 200)
    assert [found.id for found in webhooks.deliveries(webhook.id, state="delivered", limit=10)[0]] == [first.id]
    page, cursor = webhooks.deliveries(webhook.id, limit=2)
    rest, end = webhooks.deliveries(webhook.id, limit=2, cursor=cursor)
    assert [found.id for found in rest] == [first.id]
    assert (len(page), end) == (2, None)
