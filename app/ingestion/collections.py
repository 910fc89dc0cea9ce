"""Make, change and remove a collection: its row, its folder, its jobs and its keys together."""

from typing import Any

from app.catalog.collections import Collection
from app.domain import DocumentState, Notice
from app.errors import EmbeddingModelMismatch, NotFound
from app.ingestion.chunkers.options import check_collection_chunking, completed_chunking
from app.ingestion.ingest import Ingestion
from app.ingestion.written_contexts import UNAVAILABLE

_INDEXED_BY = ("chunking", "normalisation", "indexing", "contextualizer", "language")


def create_collection(
    ingestion: Ingestion, name: str, *, title: str | None, description: str | None, settings: dict[str, Any]
) -> Collection:
    """Make an empty collection whose embedding model is fixed by name; raise `NameTaken`."""
    settings = checked_settings(ingestion, settings)
    with ingestion.opened.making() as put_in_place:
        return ingestion.collections.create(
            name, title=title, description=description, settings=settings, put_in_place=put_in_place
        )


def update_collection(
    ingestion: Ingestion,
    collection: Collection,
    *,
    title: str | None,
    description: str | None,
    settings: dict[str, Any],
) -> Collection:
    """Change a collection's words and settings.

    Documents that are there keep their chunks until they are sent again. Raises `EmbeddingModelMismatch` for another
    model when vectors are stored.
    """
    settings = checked_settings(ingestion, settings)
    before, after = collection.embedding_model, settings["embedding"]["model"]
    if before != after:
        with ingestion.opened.get(collection.id) as opened:
            if opened.store.embedding_space() is not None:
                raise EmbeddingModelMismatch(
                    f"the collection holds vectors of {before} and cannot change to {after}",
                    hint="move it by `POST /v1/collections/{collection}/reembed`",
                )
    return ingestion.collections.update(collection, title=title, description=description, settings=settings)


def change_notices(ingestion: Ingestion, before: Collection | None, after: Collection) -> list[Notice]:
    """Return what the new settings of a collection do not do, or not yet; `before` is `None` for a new one."""
    notices: list[Notice] = []
    changed = (
        [] if before is None else [name for name in _INDEXED_BY if _setting(before, name) != _setting(after, name)]
    )
    if changed:
        with ingestion.opened.get(after.id) as opened:
            ready = opened.store.stats().documents[DocumentState.READY]
        if ready:
            detail = (
                f"{ready} documents stay as they were indexed until they are sent again, which works with the same "
                f"bytes too; until then searches find both ({', '.join(changed)})"
            )
            notices.append(Notice("documents_not_reindexed", detail, {"documents": ready, "settings": changed}))
    if after.contextualizer == "llm" and ingestion.language_model is None:
        detail = "no language model is configured here, so documents get their title and headings as contexts"
        notices.append(Notice(UNAVAILABLE, detail))
    return notices


def _setting(collection: Collection, name: str) -> Any:
    return getattr(collection, name, collection.settings.get(name))


def remove_collection(ingestion: Ingestion, collection: Collection) -> None:
    """Delete a collection with everything that belongs to it; its folder is gone when this returns."""
    with ingestion.opened.deleting(collection.id) as take_away:
        if ingestion.collections.delete(collection.name, take_away) is None:
            raise NotFound(f"there is no collection {collection.name!r}")


def checked_settings(ingestion: Ingestion, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings whose embedding model is named and whose chunking is complete.

    Raises `InvalidRequest` for a model that is not available, and for chunks that its window cannot hold.
    """
    embedding = dict(settings.get("embedding") or {})
    model = embedding.get("model") or ingestion.embedders.default_model
    chunking = completed_chunking(settings.get("chunking", {}))
    check_collection_chunking(chunking, ingestion.embedders.get(model).window_tokens)
    return {**settings, "embedding": embedding | {"model": model}, "chunking": chunking}
