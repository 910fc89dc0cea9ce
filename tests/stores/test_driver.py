import sys
from types import ModuleType

import pytest

from app.errors import Misconfigured
from app.stores.driver import sqlite_driver


@pytest.mark.parametrize(
    ("version", "loads", "usable"), [((3, 45, 0), True, True), ((3, 44, 9), True, False), ((3, 50, 1), False, False)]
)
def test_pythons_own_sqlite_serves_where_it_can(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], loads: bool, usable: bool
) -> None:
    own = ModuleType("sqlite3")
    own.sqlite_version_info, own.sqlite_version = version, ".".join(map(str, version))
    own.Connection = type("Connection", (), {"enable_load_extension": None} if loads else {})
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    monkeypatch.setitem(sys.modules, "sqlite3", own)
    if usable:
        assert sqlite_driver() is own
    else:
        with pytest.raises(Misconfigured):
            sqlite_driver()
