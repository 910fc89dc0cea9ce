"""Files that came inside a document: documents of their own, which come, change and go with it.

A document lists its attachments in its extraction report, where no caller can change the list.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain import Document, Metadata
from app.ingestion.attachment_names import first_free
from app.ingestion.port import ReceivedAttachment
from app.ingestion.sources import Original
from app.ingestion.submission import JobPayload, Submission
from app.stores.port import CollectionStore

ATTACHMENTS, ATTACHMENT_OF = "attachments", "attachment_of"
"""Fields of metadata: what a document brought with it, and what brought a document."""

MAX_DEPTH = 3
"""Attachments of attachments of attachments are read, those in them are not."""

_SEPARATOR = "~"
_LONGEST_ID = 256
_KEPT_OF_PARENT = 120


@dataclass(frozen=True, slots=True)
class Attached:
    """A received file and the id of the document that it becomes."""

    id: str
    file: ReceivedAttachment

    def submission(self, original: Original, parent: str, payload: JobPayload, inherited: Metadata) -> Submission:
        """Return the document to submit; its parent's metadata let filters treat both alike."""
        return Submission(
            self.id,
            original,
            media_type=self.file.media_type,
            filename=self.file.name,
            metadata={**inherited, ATTACHMENT_OF: parent},
            expires_at=payload.expires,
            password=payload.password,
            attachment_of=parent,
            depth=payload.depth + 1,
        )


def identified(received: Sequence[ReceivedAttachment], parent: str, store: CollectionStore) -> list[Attached]:
    """Give each file the id that it has had under its parent, or a free one."""
    attached: list[Attached] = []
    for file in received:
        attached.append(Attached(_free_id(parent, file.name, store, {each.id for each in attached}), file))
    return attached


def report(attached: Mapping[Attached, Original]) -> dict[str, Any]:
    """Return the list that stands in the parent's extraction report."""
    entries = [{"id": each.id, "name": each.file.name, "bytes": original.size} for each, original in attached.items()]
    return {ATTACHMENTS: entries} if entries else {}


def descent(payload: JobPayload) -> dict[str, Any]:
    """Return what the extraction report says of where a document came from."""
    return {ATTACHMENT_OF: payload.attachment_of, "depth": payload.depth} if payload.attachment_of else {}


def inherited_metadata(payload: JobPayload, found: Metadata) -> dict[str, Any]:
    """Return what the caller said of the parent, without what was found in it."""
    return {
        name: value
        for name, value in payload.metadata.items()
        if name not in (ATTACHMENTS, ATTACHMENT_OF) and not (name in found and found[name] == value)
    }


def listed(document: Document | None) -> list[str]:
    """Return the ids of the attachments of a document's ready version."""
    entries = (document.extraction or {}).get(ATTACHMENTS, []) if document is not None else []
    return [entry["id"] for entry in entries]


def missing(document: Document, store: CollectionStore) -> bool:
    """Return whether an attachment is not there, since the process died before it was submitted."""
    return any(store.document(document_id) is None for document_id in listed(document))


def direct(document: Document | None, store: CollectionStore) -> dict[str, Document]:
    """Return the attachments of a document; not a document that only took such an id."""
    children = {document_id: store.document(document_id) for document_id in listed(document)}
    return {
        document_id: child
        for document_id, child in children.items()
        if child is not None and document is not None and is_attachment_of(child, document.id)
    }


def of_documents(documents: Iterable[Document], store: CollectionStore) -> dict[str, Document]:
    """Return the attachments of documents, and those of attachments."""
    found: dict[str, Document] = {}
    waiting = list(documents)
    while waiting:
        fresh = {key: child for key, child in direct(waiting.pop(), store).items() if key not in found}
        found |= fresh
        waiting += fresh.values()
    return found


def is_attachment_of(document: Document, parent: str) -> bool:
    """Return whether the document came with that parent."""
    said: Mapping[str, Any] = document.extraction if document.version and document.extraction else document.metadata
    return said.get(ATTACHMENT_OF) == parent


def _free_id(parent: str, name: str, store: CollectionStore, taken: set[str]) -> str:
    def is_taken(candidate: str) -> bool:
        document_id = _id(parent, candidate)
        existing = store.document(document_id)
        return document_id in taken or (existing is not None and not is_attachment_of(existing, parent))

    return _id(parent, first_free(name, is_taken))


def _id(parent: str, name: str) -> str:
    document_id = f"{parent}{_SEPARATOR}{name}"
    if len(document_id) <= _LONGEST_ID:
        return document_id
    digest = hashlib.sha256(parent.encode()).hexdigest()[:12]
    return f"{parent[:_KEPT_OF_PARENT]}-{digest}{_SEPARATOR}{name[-(_LONGEST_ID - _KEPT_OF_PARENT - 14) :]}"
