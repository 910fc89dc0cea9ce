import hmac
import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pysqlite3
import pytest

from app.catalog import database as database_module
from app.catalog.api_keys import ApiKeys
from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.principal import ADMIN, Principal, Role
from app.errors import Conflict, InvalidRequest, NotFound, Unauthenticated

FILTER = {"field": "team", "op": "eq", "value": "hr"}


def test_the_secret_of_a_key_opens_what_the_key_was_made_for(
    api_keys: ApiKeys, handbook: Collection, recipes: Collection
) -> None:
    made, secret = api_keys.create(
        "console", [handbook.id, recipes.id, handbook.id], Role.ASK, filter=FILTER, requests_per_minute=30
    )
    assert api_keys.authenticate(secret) == Principal(
        made.id, Role.ASK, frozenset({handbook.id, recipes.id}), FILTER, 30
    )
    assert made.collection_ids == tuple(sorted({handbook.id, recipes.id}))
    assert secret.startswith(made.prefix)
    assert len(made.prefix) < 12


def test_the_admin_key_sees_all(api_keys: ApiKeys) -> None:
    assert api_keys.authenticate("the-admin-key-of-the-tests") is ADMIN


def test_no_secret_is_in_the_database(
    api_keys: ApiKeys, handbook: Collection, database: Database, tmp_path: Path
) -> None:
    _, secret = api_keys.create("console", [handbook.id], Role.ASK)
    database.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("catalog.db*"))
    assert handbook.id.encode() in stored
    assert secret.rpartition("_")[2].encode() not in stored
    assert b"the-admin-key-of-the-tests" not in stored


def test_what_is_no_whole_secret_is_refused(api_keys: ApiKeys, handbook: Collection) -> None:
    made, secret = api_keys.create("console", [handbook.id], Role.ASK)
    wrong = "0" if secret[-1] != "0" else "1"
    for given in (
        "",
        "x",
        secret[:-1],
        secret[:-1] + wrong,
        secret + " ",
        secret + "\n",
        secret.upper(),
        made.id,
        "the-admin-key-of-the-test",
        "fn_" + "0" * 16 + "_" + "0" * 48,
        "fn_\x00_é\ud800",
    ):
        with pytest.raises(Unauthenticated):
            api_keys.authenticate(given)


@pytest.mark.parametrize("known_id", [True, False])
def test_secrets_are_compared_in_constant_time_whether_or_not_the_id_exists(
    api_keys: ApiKeys, handbook: Collection, monkeypatch: pytest.MonkeyPatch, known_id: bool
) -> None:
    _, secret = api_keys.create("console", [handbook.id], Role.ASK)
    given = secret[:20] + "f" * 48 if known_id else "fn_" + "0" * 16 + "_" + "f" * 48
    compared: list[tuple[str, str]] = []
    real = hmac.compare_digest

    def record(one: str, other: str) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", record)
    with pytest.raises(Unauthenticated):
        api_keys.authenticate(given)
    assert [len(text) for pair in compared for text in pair] == [64] * 4


def test_an_expired_key_is_refused(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    _, secret = api_keys.create("console", [handbook.id], Role.ASK, expires_at=clock.now + timedelta(hours=1))
    clock.pass_time(3599)
    api_keys.authenticate(secret)
    clock.pass_time(1)
    with pytest.raises(Unauthenticated, match="expired"):
        api_keys.authenticate(secret)


def test_a_revoked_key_is_refused_and_stays_listed(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    made, secret = api_keys.create("console", [handbook.id], Role.ASK)
    revoked = api_keys.revoke(made.id)
    assert revoked.revoked
    with pytest.raises(Unauthenticated, match="revoked"):
        api_keys.authenticate(secret)
    assert api_keys.get(made.id) == revoked
    clock.pass_time(60)
    assert api_keys.revoke(made.id) == revoked
    with pytest.raises(NotFound):
        api_keys.revoke("key_0")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"role": Role.ADMIN}, "/role"),
        ({"collection_ids": []}, "/collections"),
        ({"expires_at": datetime.fromisoformat("2029-12-31T23:59:59+00:00")}, "/expires_at"),
        ({"expires_at": datetime.fromisoformat("2031-01-01T00:00:00")}, "/expires_at"),
    ],
)
def test_a_key_that_could_never_be_used_is_refused(
    api_keys: ApiKeys, handbook: Collection, change: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        api_keys.create(**{"name": "console", "collection_ids": [handbook.id], "role": Role.ASK} | change)
    assert refused.value.errors[0].pointer == pointer
    assert api_keys.list(None, limit=10) == ([], None)


def test_a_key_for_a_collection_that_does_not_exist_is_refused(api_keys: ApiKeys, handbook: Collection) -> None:
    with pytest.raises(NotFound):
        api_keys.create("console", [handbook.id, "col_0"], Role.ASK)
    assert api_keys.list(None, limit=10) == ([], None)


def test_a_list_for_one_collection_hides_keys_that_open_another_as_well(
    api_keys: ApiKeys, handbook: Collection, recipes: Collection
) -> None:
    mine, _ = api_keys.create("mine", [handbook.id], Role.OWNER)
    theirs, _ = api_keys.create("theirs", [recipes.id], Role.OWNER)
    both, _ = api_keys.create("both", [handbook.id, recipes.id], Role.OWNER)
    assert api_keys.list({handbook.id}, limit=10) == ([mine], None)
    assert {key.id for key in api_keys.list({handbook.id, recipes.id}, limit=10)[0]} == {mine.id, theirs.id, both.id}
    assert {key.id for key in api_keys.list(None, limit=10)[0]} == {mine.id, theirs.id, both.id}
    assert api_keys.list([], limit=10) == ([], None)


def test_both_secrets_are_valid_until_the_overlap_ends(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    old, old_secret = api_keys.create("console", [handbook.id], Role.INGEST, filter=FILTER, requests_per_minute=5)
    new, new_secret = api_keys.rotate(old.id, overlap_seconds=600)
    assert new.rotated_from == old.id
    assert (new.name, new.role, new.collection_ids, new.filter) == (old.name, old.role, old.collection_ids, FILTER)
    assert (new.expires_at, new.requests_per_minute) == (None, 5)
    clock.pass_time(599)
    assert api_keys.authenticate(old_secret).key_id == old.id
    assert api_keys.authenticate(new_secret).key_id == new.id
    clock.pass_time(1)
    with pytest.raises(Unauthenticated):
        api_keys.authenticate(old_secret)
    assert api_keys.authenticate(new_secret).key_id == new.id


def test_a_rotation_never_lengthens_a_keys_life(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    ends = clock.now + timedelta(minutes=1)
    old, _ = api_keys.create("console", [handbook.id], Role.ASK, expires_at=ends)
    new, _ = api_keys.rotate(old.id, overlap_seconds=600)
    found = api_keys.get(old.id)
    assert found is not None
    assert found.expires_at == new.expires_at == ends


def test_a_key_that_has_ended_cannot_be_rotated(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    revoked, _ = api_keys.create("revoked", [handbook.id], Role.ASK)
    api_keys.revoke(revoked.id)
    expired, _ = api_keys.create("expired", [handbook.id], Role.ASK, expires_at=clock.now + timedelta(seconds=1))
    clock.pass_time(1)
    for key in (revoked, expired):
        with pytest.raises(Conflict):
            api_keys.rotate(key.id, overlap_seconds=60)
    with pytest.raises(NotFound):
        api_keys.rotate("key_0", overlap_seconds=60)


def test_the_last_use_is_written_at_most_once_a_minute(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    made, secret = api_keys.create("console", [handbook.id], Role.ASK)
    began = clock.now
    for _ in range(5):
        api_keys.authenticate(secret)
        clock.pass_time(10)
    found = api_keys.get(made.id)
    assert found is not None
    assert found.last_used_at == began
    clock.pass_time(10)
    api_keys.authenticate(secret)
    found = api_keys.get(made.id)
    assert found is not None
    assert found.last_used_at == began + timedelta(minutes=1)


def test_a_busy_catalog_does_not_fail_a_request_for_noting_its_key(
    tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.05)
    database = Database(tmp_path / "catalog.db")
    database.migrate()
    api_keys = ApiKeys(database, "the-admin-key-of-the-tests", clock=clock)
    made, secret = api_keys.create("console", [Collections(database).create("handbook", settings={}).id], Role.ASK)
    other = pysqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        assert api_keys.authenticate(secret).key_id == made.id
        assert api_keys.authenticate(secret).key_id == made.id
    other.execute("ROLLBACK")
    other.close()
    assert [record.message for record in caplog.records] == ["the use of a key was not noted"]
    database.close()


def test_a_principal_holds_its_key_until_it_is_revoked_or_expires(
    api_keys: ApiKeys, handbook: Collection, clock: Any
) -> None:
    made, secret = api_keys.create("console", [handbook.id], Role.ASK, expires_at=clock.now + timedelta(hours=1))
    revoked, other = api_keys.create("other", [handbook.id], Role.ASK)
    principal, revoked_principal = api_keys.authenticate(secret), api_keys.authenticate(other)
    assert api_keys.holds(ADMIN)
    assert api_keys.holds(principal)
    assert api_keys.holds(revoked_principal)
    api_keys.revoke(revoked.id)
    assert not api_keys.holds(revoked_principal)
    clock.pass_time(3600)
    assert not api_keys.holds(principal)
    assert made.id == principal.key_id


def test_a_key_is_remembered_until_anything_is_committed(
    api_keys: ApiKeys, handbook: Collection, database: Database, clock: Any
) -> None:
    made, secret = api_keys.create("console", [handbook.id], Role.ASK)
    assert api_keys.remembered(secret) is None
    principal = api_keys.authenticate(secret)
    # Its use was noted, which is a commit.
    assert api_keys.remembered(secret) is None
    assert api_keys.authenticate(secret) == principal
    assert api_keys.remembered(secret) == principal
    assert api_keys.remembered("the-admin-key-of-the-tests") is ADMIN
    with pytest.raises(Unauthenticated):
        api_keys.remembered(secret[:-1] + ("0" if secret[-1] != "0" else "1"))
    clock.now += timedelta(minutes=2)
    # Now its use is to be noted again.
    assert api_keys.remembered(secret) is None
    for _ in range(2):
        api_keys.authenticate(secret)
    ApiKeys(Database(Path(database._path)), "another admin key").revoke(made.id)
    assert api_keys.remembered(secret) is None
    with pytest.raises(Unauthenticated, match="revoked"):
        api_keys.authenticate(secret)
    with pytest.raises(Unauthenticated, match="revoked"):
        api_keys.remembered(secret)


def test_keys_that_nobody_made_push_none_out(
    database: Database, handbook: Collection, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.catalog.api_keys.MOST_REMEMBERED", 2)
    api_keys = ApiKeys(database, "the-admin-key-of-the-tests", clock=clock)
    _, secret = api_keys.create("console", [handbook.id], Role.ASK)
    for _ in range(2):
        api_keys.authenticate(secret)
    for number in range(5):
        with pytest.raises(Unauthenticated):
            api_keys.authenticate(f"fn_{number:016x}_{number:048x}")
    assert api_keys.remembered(secret) is not None


def test_a_remembered_key_ends_when_it_expires(api_keys: ApiKeys, handbook: Collection, clock: Any) -> None:
    _, secret = api_keys.create("console", [handbook.id], Role.ASK, expires_at=clock.now + timedelta(seconds=30))
    for _ in range(2):
        api_keys.authenticate(secret)
    assert api_keys.remembered(secret) is not None
    clock.now += timedelta(seconds=30)
    with pytest.raises(Unauthenticated, match="expired"):
        api_keys.remembered(secret)
