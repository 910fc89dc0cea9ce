"""Which documents of a collection a key sees: all, or those that its forced filter lets through."""

from app.api.dependencies import Access
from app.api.searching import forced_filter
from app.domain import And, Condition, Document, Filter, Operator
from app.errors import NotFound


def existing_document(access: Access, document_id: str) -> Document:
    """Return the document, or raise the `NotFound` that is the same for one that the key does not see."""
    document = find_document(access, document_id)
    if document is None:
        raise NotFound(f"there is no document {document_id[:256]!r} in this collection")
    return document


def find_document(access: Access, document_id: str) -> Document | None:
    """Return the document if it is there and the key sees it."""
    forced = forced_filter(access)
    with access.services.opened.get(access.collection.id) as opened:
        if forced is None:
            return opened.store.document(document_id)
        wanted = And((forced, Condition("$document_id", Operator.EQ, document_id)))
        found = opened.store.list_documents(wanted, limit=1, cursor=None).data
        return found[0] if found else None


def refuse_hidden_document(access: Access, document_id: str) -> None:
    """Raise `NotFound` for a write to a document that is there but that the key does not see."""
    if access.principal.filter is None:
        return
    with access.services.opened.get(access.collection.id) as opened:
        is_there = opened.store.document(document_id) is not None
    if is_there:
        existing_document(access, document_id)


def narrowed(access: Access, asked: Filter | None) -> Filter | None:
    """Return the caller's filter, if any, within the key's."""
    return forced_filter(access) if asked is None else narrowed_filter(access, asked)


def narrowed_filter(access: Access, asked: Filter) -> Filter:
    """Return the caller's filter within the key's."""
    forced = forced_filter(access)
    return asked if forced is None else And((forced, asked))
