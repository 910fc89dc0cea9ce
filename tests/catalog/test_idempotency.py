from typing import Any

import pytest

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.idempotency import LONGEST_ANSWER, Idempotency, StoredAnswer
from app.errors import Conflict, InvalidRequest, NotFound

ANSWER = StoredAnswer(202, {"Location": "/v1/jobs/job_1"}, b'{"id":"job_1"}\x00\xff')


@pytest.fixture
def idempotency(database: Database, clock: Any) -> Idempotency:
    return Idempotency(database, hours=24, clock=clock)


def test_a_request_that_comes_again_gets_the_first_answer(idempotency: Idempotency) -> None:
    assert idempotency.begin("key_a POST /x", "k", "f") is None
    idempotency.finish("key_a POST /x", "k", ANSWER.status, ANSWER.headers, ANSWER.body)
    assert idempotency.begin("key_a POST /x", "k", "f") == ANSWER
    assert idempotency.begin("key_a POST /x", "k", "f") == ANSWER


def test_the_same_key_of_another_caller_or_route_is_another_request(idempotency: Idempotency) -> None:
    assert idempotency.begin("key_a POST /x", "k", "f") is None
    assert idempotency.begin("key_b POST /x", "k", "g") is None
    assert idempotency.begin("key_a POST /y", "k", "h") is None


@pytest.mark.parametrize("answered", [True, False])
def test_another_payload_under_the_same_key_is_refused(idempotency: Idempotency, answered: bool) -> None:
    idempotency.begin("s", "k", "f")
    if answered:
        idempotency.finish("s", "k", 200, {}, b"")
    with pytest.raises(InvalidRequest) as refused:
        idempotency.begin("s", "k", "another")
    assert refused.value.code == "idempotency_key_reused"
    assert refused.value.errors[0].pointer == "header:Idempotency-Key"


def test_a_request_that_comes_again_too_early_is_told_so(idempotency: Idempotency) -> None:
    idempotency.begin("s", "k", "f")
    with pytest.raises(Conflict) as refused:
        idempotency.begin("s", "k", "f")
    assert refused.value.code == "idempotency_in_progress"


def test_an_abandoned_request_can_be_sent_again(idempotency: Idempotency) -> None:
    idempotency.begin("s", "k", "f")
    idempotency.abandon("s", "k")
    assert idempotency.begin("s", "k", "f") is None


def test_an_answer_is_not_abandoned(idempotency: Idempotency) -> None:
    idempotency.begin("s", "k", "f")
    idempotency.finish("s", "k", ANSWER.status, ANSWER.headers, ANSWER.body)
    idempotency.abandon("s", "k")
    assert idempotency.begin("s", "k", "f") == ANSWER


def test_a_request_whose_process_died_can_be_sent_again_after_a_while(idempotency: Idempotency, clock: Any) -> None:
    idempotency.begin("s", "k", "f")
    clock.pass_time(LONGEST_ANSWER.total_seconds())
    assert idempotency.begin("s", "k", "f") is None


def test_an_answer_is_forgotten_after_its_time(idempotency: Idempotency, clock: Any) -> None:
    idempotency.begin("s", "k", "f")
    idempotency.finish("s", "k", 200, {}, b"")
    clock.pass_time(24 * 3600 - 1)
    assert idempotency.begin("s", "k", "f") is not None
    clock.pass_time(1)
    assert idempotency.begin("s", "k", "another") is None


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_of_a_wrong_length_is_refused(idempotency: Idempotency, key: str) -> None:
    with pytest.raises(InvalidRequest):
        idempotency.begin("s", key, "f")


def test_a_request_to_a_collection_that_is_gone_is_refused(
    idempotency: Idempotency, collections: Collections, handbook: Collection
) -> None:
    collections.delete("handbook")
    with pytest.raises(NotFound):
        idempotency.begin("s", "k", "f", collection_id=handbook.id)
