"""Make, change and remove a collection: its row, its folder, its jobs and its keys together."""

from typing import Any

from app.catalog.collections import Collection
from app.errors import EmbeddingModelMismatch, NotFound
from app.ingestion.chunkers.options import check_collection_chunking, completed_chunking
from app.ingestion.ingest import Ingestion


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
                    hint="make another collection and send the documents there",
                )
    return ingestion.collections.update(collection.name, title=title, description=description, settings=settings)


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
