import pytest

from app.catalog.principal import ADMIN, Principal, Role

ORDER = [Role.SEARCH, Role.ASK, Role.INGEST, Role.OWNER, Role.ADMIN]


@pytest.mark.parametrize("held", ORDER)
@pytest.mark.parametrize("needed", ORDER)
def test_a_role_has_all_of_the_ones_before_it_and_none_after(held: Role, needed: Role) -> None:
    assert held.allows(needed) is (ORDER.index(held) >= ORDER.index(needed))


def test_a_principal_sees_its_own_collections_and_the_admin_sees_all() -> None:
    principal = Principal("key_1", Role.OWNER, frozenset({"col_a"}))
    assert principal.may_see("col_a")
    assert not principal.may_see("col_b")
    assert not Principal("key_1", Role.OWNER, frozenset()).may_see("col_a")
    assert ADMIN.may_see("col_a")
