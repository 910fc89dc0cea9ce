"""Who asks, and what that allows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a key may do; each role has all of the one before."""

    SEARCH = "search"
    ASK = "ask"
    INGEST = "ingest"
    OWNER = "owner"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        """Return whether this role has all of the needed one."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a valid key. `collection_ids` is `None` for the admin, who sees all.

    `filter` is the key's forced filter, as JSON. `key_id` is `None` for the admin key.
    """

    key_id: str | None
    role: Role
    collection_ids: frozenset[str] | None
    filter: dict[str, Any] | None = None
    requests_per_minute: int | None = None

    def may_see(self, collection_id: str) -> bool:
        """Return whether the key opens the collection."""
        return self.collection_ids is None or collection_id in self.collection_ids


ADMIN = Principal(key_id=None, role=Role.ADMIN, collection_ids=None)
