"""Collections as they are asked for and answered: from a body to settings, and back."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from app.api.dependencies import Access
from app.api.replies import notices
from app.api.schemas.collections import CollectionReply, CollectionSettings
from app.catalog.collections import Collection
from app.catalog.principal import Role
from app.domain import Notice
from app.errors import InsufficientScope, UnusableArchive


def settings_of(body: CollectionSettings) -> dict[str, Any]:
    """Return the settings as the catalog keeps them."""
    return {
        "embedding": body.embedding.model_dump(),
        "chunking": body.chunking.given(),
        "normalisation": body.normalisation.model_dump(),
        "indexing": body.indexing,
        "contextualizer": body.contextualizer,
        "analysis": body.analysis.model_dump(),
        "defaults": body.defaults.model_dump(exclude_unset=True, by_alias=True),
        "instructions": body.instructions,
        "metadata_fields": body.metadata_fields,
        "keep_versions": body.keep_versions,
        "max_age_days": body.max_age_days,
        "quotas": body.quotas.model_dump(exclude_none=True),
        "query_log": body.query_log.model_dump(),
    }


def allowed_quotas(access: Access, body: CollectionSettings) -> dict[str, int]:
    """Return the quotas that the body leaves: a tenant must not lift its own, so others than the admin key keep them.

    Raises `InsufficientScope` for a body that names others.
    """
    before: dict[str, int] = access.collection.settings.get("quotas", {})
    asked: dict[str, int] = body.quotas.model_dump(exclude_none=True)
    if access.principal.role is Role.ADMIN:
        return asked
    if "quotas" in body.model_fields_set and asked != before:
        raise InsufficientScope(
            "only the admin key changes quotas",
            hint="leave `quotas` out, and they stay as they are",
            extra={"needed_role": Role.ADMIN.value, "role": access.principal.role.value},
        )
    return before


def archived_settings(exported: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that an archive holds, with defaults for what came since; raises `UnusableArchive`."""
    try:
        return settings_of(CollectionSettings.model_validate(dict(exported)))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UnusableArchive(f"the archive's settings cannot be used, at {where[:200]!r}") from None


def collection_reply(collection: Collection, warnings: Iterable[Notice] = ()) -> CollectionReply:
    """Return the collection as it is answered."""
    return CollectionReply(
        name=collection.name,
        title=collection.title,
        description=collection.description,
        created_at=collection.created_at,
        updated_at=collection.updated_at,
        warnings=notices(warnings),
        **collection.settings,
    )
