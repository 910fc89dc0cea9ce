"""Create, find, change and delete collections; their folders are not this room's business."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from sqlalchemy import Connection, Select, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.catalog.database import Database
from app.catalog.paging import NewestFirst
from app.catalog.past import Present, Retried, erase_past
from app.catalog.tables import api_keys, collections, key_collections
from app.domain import Contextualizer
from app.errors import FieldError, InvalidRequest, NameTaken, NotFound
from app.stores.column_types import utc_now
from app.stores.remembered import Remembered

DEFAULT_KEPT_VERSIONS = 3
"""Versions before a document's present one that can be brought back, where the collection says nothing."""

MOST_REMEMBERED = 1000
"""Collections that are remembered, a few kilobytes each."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_PAGE = 200
_newest_first = NewestFirst(collections)


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One tenant's collection. `id` names its folder, stays inside the service and is never used twice.

    `settings` is JSON: `embedding`, `chunking`, `normalisation`, `indexing`, `contextualizer`, `analysis`,
    `defaults`, `instructions`, `metadata_fields`, `query_log`.
    """

    id: str
    name: str
    title: str | None
    description: str | None
    settings: dict[str, Any]
    created_at: datetime
    updated_at: datetime

    @property
    def embedding_model(self) -> str:
        """Return the name of the model whose vectors it holds, or will hold."""
        return str(self.settings["embedding"]["model"])

    @property
    def indexing(self) -> Literal["standard", "enhanced"]:
        """Return whether clean texts and parents have vectors beside those of chunks with their contexts."""
        return "enhanced" if self.settings.get("indexing") == "enhanced" else "standard"

    @property
    def contextualizer(self) -> Contextualizer:
        """Return who says where its chunks stand."""
        named: Contextualizer = self.settings.get("contextualizer", "heading")
        return named

    @property
    def language(self) -> str:
        """Return the language that its documents are stemmed by, `auto` to tell it from each document."""
        return str(self.settings.get("analysis", {}).get("language", "auto"))

    @property
    def keep_versions(self) -> int:
        """Return how many versions before a document's present one can be brought back."""
        return int(self.settings.get("keep_versions", DEFAULT_KEPT_VERSIONS))

    @property
    def max_age(self) -> timedelta | None:
        """Return after how long without a change documents are deleted, `None` for never."""
        days = self.settings.get("max_age_days")
        return None if days is None else timedelta(days=days)


class Collections:
    """The collections that exist, in the catalog's database."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._remembered = Remembered(database.moment, database.read, most=MOST_REMEMBERED)

    def create(
        self,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        settings: dict[str, Any],
        put_in_place: Callable[[str], None] = _nothing,
    ) -> Collection:
        """Add a collection; raises `NameTaken`, and `InvalidRequest` for a name that is no slug.

        `put_in_place` gets its id before it is committed, so that no collection is known whose folder is not there.
        """
        if not _NAME.fullmatch(name):
            detail = f"{name[:100]!r} is no collection name; allowed are 1 to 63 of a-z, 0-9, _ and -, not _ or - first"
            raise InvalidRequest(detail, errors=[FieldError("path:collection", "invalid_name", detail)])
        now = self._clock()
        created = Collection(f"col_{secrets.token_hex(12)}", name, title, description, settings, now, now)
        try:
            with self._database.write() as connection:
                connection.execute(insert(collections).values(**asdict(created)))
                put_in_place(created.id)
        except IntegrityError as error:
            raise NameTaken(f"there is a collection {name!r} already", hint="choose another name") from error
        return created

    def get(self, name: str) -> Collection | None:
        """Return the collection of that name, or `None`."""
        return self._remembered.get(name, lambda connection: _find(connection, name))

    def remembered(self, name: str) -> Collection | None:
        """Return the collection if it is remembered as it still is, else `None`; nothing is read, nobody waits."""
        return cast("Collection | None", self._remembered.known(name))

    def by_id(self, collection_id: str) -> Collection | None:
        """Return the collection with that internal id, or `None`."""
        with self._database.read() as connection:
            return _one(connection, select(collections).where(collections.c.id == collection_id))

    def list(
        self, *, ids: Iterable[str] | None = None, limit: int, cursor: str | None = None
    ) -> tuple[list[Collection], str | None]:
        """Return a page of those with one of these ids (`None`: all), newest first, and the next page's cursor."""
        query = select(collections)
        if ids is not None:
            query = query.where(collections.c.id.in_(list(ids)))
        with self._database.read() as connection:
            rows = connection.execute(_newest_first.page(query, limit, cursor)).mappings().all()
        page, next_cursor = _newest_first.split(rows, limit)
        return [Collection(**row) for row in page], next_cursor

    def update(
        self, before: Collection, *, title: str | None, description: str | None, settings: dict[str, Any]
    ) -> Collection:
        """Replace what may change; what is to stay as it was `before` stays as others left it since. Raises `NotFound`.

        So a re-embedding that ends, or another change of the settings, is not undone by who had read them earlier.
        """
        wanted = collections.c.id == before.id
        with self._database.write() as connection:
            present = _one(connection, select(collections).where(wanted))
            if present is None:
                raise NotFound(f"there is no collection {before.name!r}")
            values = _merged({"title": title, "description": description}, asdict(before), asdict(present))
            values["settings"] = _merged(settings, before.settings, present.settings)
            values["updated_at"] = self._clock()
            connection.execute(update(collections).where(wanted).values(values))
        return replace(present, **values)

    def set_embedding_model(self, collection_id: str, model_name: str) -> None:
        """Name the model of a collection's vectors, whatever else of its settings changes at the same moment."""
        with self._database.write() as connection:
            wanted = collections.c.id == collection_id
            settings = connection.execute(select(collections.c.settings).where(wanted)).scalar_one_or_none()
            if settings is not None:
                changed = {**settings, "embedding": {**settings["embedding"], "model": model_name}}
                connection.execute(update(collections).where(wanted).values(settings=changed, updated_at=self._clock()))

    def every(self) -> Iterator[Collection]:
        """Yield all collections, newest first, a page at a time."""
        cursor: str | None = None
        while True:
            page, cursor = self.list(limit=_PAGE, cursor=cursor)
            yield from page
            if cursor is None:
                return

    @contextmanager
    def unchanging(self) -> Iterator[AbstractSet[str]]:
        """Give the ids of all collections; none is added or deleted, by any process, while they are used."""
        with self._database.write() as connection:
            yield set(connection.execute(select(collections.c.id)).scalars())

    def delete(self, name: str, take_away: Callable[[], None] = _nothing) -> Collection | None:
        """Forget the collection with its jobs, its remembered requests and the keys that open nothing else.

        Return what it was, or `None` if there was none. `take_away` is called before this is committed, so that no
        folder is left whose collection is not known.
        """
        with self._database.write() as connection:
            found = _find(connection, name)
            if found is None:
                return None
            bound = select(key_collections.c.key_id).where(key_collections.c.collection_id == found.id)
            key_ids = connection.execute(bound).scalars().all()
            # Bindings, jobs and remembered requests go with it by their foreign keys.
            connection.execute(delete(collections).where(collections.c.id == found.id))
            opens_another = exists().where(key_collections.c.key_id == api_keys.c.id)
            connection.execute(delete(api_keys).where(api_keys.c.id.in_(key_ids), ~opens_another))
            take_away()
        return found

    def erase_past(self, collection: Collection, retried: Retried, present: Present = frozenset) -> int:
        """Forget for good what finished jobs, remembered answers, deliveries and logged queries quote of documents.

        A job that can be `retried` stays, and so does a delivery still to be made about a document that is `present`.
        Returns how many jobs went; raises `StoreBusy`.
        """
        with self._database.write() as connection:
            erased = erase_past(connection, collection.id, retried, present, now=self._clock())
        self._database.compact()
        return erased


def _merged(asked: Mapping[str, Any], before: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked, with the present value of each member that is asked to be as it was before."""
    return {
        name: present[name] if name in present and before.get(name) == value else value for name, value in asked.items()
    }


def _find(connection: Connection, name: str) -> Collection | None:
    return _one(connection, select(collections).where(collections.c.name == name))


def _one(connection: Connection, query: Select[Any]) -> Collection | None:
    row = connection.execute(query).mappings().one_or_none()
    return Collection(**row) if row else None
