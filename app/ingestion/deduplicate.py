"""The verb `deduplicate`: find chunks that say the same, through the index, and delete documents that add nothing.

Chunks are looked at by document and place, oldest document first. One that is like none before it is kept, and its
nearest neighbours that nobody has looked at are its duplicates. So each duplicate is near the very chunk that stays,
and not only near another duplicate of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.collections import Collection
from app.catalog.job import Job
from app.domain import Document
from app.errors import Cancelled
from app.indexes.opening import OpenCollection
from app.ingestion import attachments
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.stores.port import CollectionStore, FoundChunk, Keys, Scope

DEFAULT_THRESHOLD = 0.98
DEFAULT_GROUPS = 100
MOST_LISTED = 20
"""Duplicates of one chunk that are listed, and documents; the counts tell of all."""

_EVERYTHING = Scope(None, None)
_CHUNKS_AT_ONCE = 256
_DOCUMENTS_AT_ONCE = 100
_FIRST_CANDIDATES = 32
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class _Found:
    """Every child of the collection in order, and each duplicate's kept chunk and cosine with it."""

    keys: Keys
    document_keys: Keys
    kept_of: dict[int, int] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)

    def groups(self) -> list[tuple[int, list[int]]]:
        """Return kept chunks with their duplicates, those with the most first."""
        groups: dict[int, list[int]] = {}
        for duplicate, kept in self.kept_of.items():
            groups.setdefault(kept, []).append(duplicate)
        return sorted(groups.items(), key=lambda group: -len(group[1]))

    def whole_documents(self) -> dict[int, list[int]]:
        """Return the chunks of each document that has none but duplicates, by its key.

        A chunk that is kept is never in one of them, so all of them can go.
        """
        is_duplicate = np.isin(self.keys, np.fromiter(self.kept_of, np.int64, len(self.kept_of)))
        whole = np.setdiff1d(self.document_keys[is_duplicate], self.document_keys[~is_duplicate])
        chunks: dict[int, list[int]] = {key: [] for key in whole.tolist()}
        inside = np.isin(self.document_keys, whole)
        for key, document_key in zip(self.keys[inside].tolist(), self.document_keys[inside].tolist(), strict=True):
            chunks[document_key].append(key)
        return chunks


def run_deduplicate(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> dict[str, Any]:
    """Do a `deduplicate` job: report, and delete whole documents only where its payload says so."""
    collection = ingestion.collections.by_id(job.collection_id)
    if collection is None:
        raise Cancelled("the collection was deleted")
    began = datetime.now(UTC)
    opened.catch_up()
    found = _find(opened, job.payload["threshold"], report)
    documents = found.whole_documents()
    groups = found.groups()
    # Told before anything is deleted, since afterwards nobody could.
    told = {
        "chunks": len(found.keys),
        "duplicates": len(found.kept_of),
        "groups": len(groups),
        "largest_groups": [_told(opened.store, found, *group) for group in groups[: job.payload["groups"]]],
        "duplicate_documents": len(documents),
        "first_documents": _ids(opened.store, list(documents.values())[:MOST_LISTED]),
    }
    deleted = _delete(ingestion, collection, opened, found, began, report) if job.payload["delete"] else 0
    return told | {"deleted_documents": deleted}


def _find(opened: OpenCollection, threshold: float, report: JobReport) -> _Found:
    found = _Found(*opened.store.upkeep.chunk_order())
    looked_at: set[int] = set()
    report.stage("compare", total=len(found.keys), unit="chunks")
    for first in range(0, len(found.keys), _CHUNKS_AT_ONCE):
        report.advance(first)
        some = [key for key in found.keys[first : first + _CHUNKS_AT_ONCE].tolist() if key not in looked_at]
        vectors = opened.store.vectors_of(some)
        for key in some:
            if key in looked_at or key not in vectors:
                continue
            looked_at.add(key)
            for duplicate, cosine in _alike(opened, vectors[key], threshold).items():
                if duplicate not in looked_at:
                    looked_at.add(duplicate)
                    found.kept_of[duplicate], found.cosines[duplicate] = key, cosine
    report.advance(len(found.keys))
    return found


def _alike(opened: OpenCollection, vector: NDArray[np.float32], threshold: float) -> Mapping[int, float]:
    """Return every chunk whose exact cosine with the vector reaches the threshold."""
    limit = _FIRST_CANDIDATES
    while True:
        candidates = opened.index.dense.search(vector, limit, _EVERYTHING)
        exact = opened.store.similarities(vector, candidates.keys)
        alike = {key: cosine for key, cosine in exact.items() if cosine >= threshold - _ROUNDING}
        # The index ranks roughly: those that are alike end well before its candidates do, or there are more of them.
        if len(candidates.keys) < limit or 2 * len(alike) <= limit:
            return alike
        limit *= 4


def _told(store: CollectionStore, found: _Found, kept_key: int, duplicates: Sequence[int]) -> dict[str, Any]:
    chunks = {chunk.chunk_key: chunk for chunk in store.found_chunks([kept_key, *duplicates[:MOST_LISTED]])}
    kept = chunks.pop(kept_key, None)
    return {
        "kept": None if kept is None else _named(kept),
        "count": len(duplicates),
        "duplicates": [
            _named(chunk)
            | {
                "cosine": round(min(1.0, found.cosines[key]), 4),
                "same_text": kept is not None and chunk.text == kept.text,
            }
            for key, chunk in chunks.items()
        ],
    }


def _named(chunk: FoundChunk) -> dict[str, Any]:
    return {"document_id": chunk.document_id, "chunk_id": chunk.chunk_id}


def _ids(store: CollectionStore, chunks_of_documents: Sequence[Sequence[int]]) -> list[str]:
    return [chunk.document_id for chunk in store.found_chunks([keys[0] for keys in chunks_of_documents])]


def _delete(
    ingestion: Ingestion,
    collection: Collection,
    opened: OpenCollection,
    found: _Found,
    began: datetime,
    report: JobReport,
) -> int:
    """Delete the documents that have only duplicates; one that changed meanwhile stays, and its kept chunks' too."""
    whole, store = found.whole_documents(), opened.store
    chunks_of_documents = list(whole.values())
    report.stage("delete", total=len(whole), unit="documents")
    deleted = 0
    for first in range(0, len(whole), _DOCUMENTS_AT_ONCE):
        report.advance(first)
        some = map(store.document, _ids(store, chunks_of_documents[first : first + _DOCUMENTS_AT_ONCE]))
        over = [each.id for each in some if each is not None and _is_over(each, store, found, whole, began)]
        deleted += ingestion.delete(collection, over)
    report.advance(len(whole))
    return deleted


def _is_over(
    document: Document, store: CollectionStore, found: _Found, whole: Mapping[int, Sequence[int]], began: datetime
) -> bool:
    """Return whether a document can go: it and its attachments, which go with it, hold only duplicates of what stays.

    An attachment stays as long as the document that it came with, which would bring it again.
    """
    if attachments.ATTACHMENT_OF in (document.extraction or {}):
        return False
    together = [document, *attachments.of_documents([document], store).values()]
    if any(each.key not in whole or each.updated_at >= began for each in together):
        return False
    kept = {found.kept_of[key] for each in together for key in whole[each.key]}
    return len(store.found_chunks(sorted(kept))) == len(kept)
