"""Which documents of a collection, and which jobs, a key sees: all, or what its forced filter lets through."""

from collections.abc import Iterable
from dataclasses import replace

from app.api.dependencies import Access, check_role
from app.api.searching import forced_filter
from app.bootstrap import Services
from app.catalog.job import Job
from app.catalog.principal import Principal, Role
from app.domain import Document
from app.errors import NotFound
from app.filters import And, Condition, Filter, Operator
from app.stores.port import version_of


def existing_document(access: Access, document_id: str) -> Document:
    """Return the document, or raise the `NotFound` that is the same for one that the key does not see."""
    document = find_document(access, document_id)
    if document is None:
        raise _absent(document_id)
    return document


def _absent(document_id: str) -> NotFound:
    return NotFound(f"there is no document {document_id[:256]!r} in this collection")


def find_document(access: Access, document_id: str, *, with_ended: bool = False) -> Document | None:
    """Return the document if it is there and the key sees it; one whose time is over only `with_ended`."""
    within = forced_filter(access)
    with access.services.opened.get(access.collection.id) as opened:
        if not with_ended:
            within = opened.store.without_ended(within, access.collection.max_age)
        if within is None:
            return opened.store.document(document_id)
        wanted = And((within, Condition("$document_id", Operator.EQ, document_id)))
        found = opened.store.list_documents(wanted, limit=1, cursor=None).data
        return found[0] if found else None


def visible_ids(access: Access, document_ids: Iterable[str]) -> set[str]:
    """Return the ids of those documents that the key sees, also of some whose time is over."""
    asked = set(document_ids)
    forced = forced_filter(access)
    if forced is None or not asked:
        return asked
    wanted = And((forced, Condition("$document_id", Operator.IN, sorted(asked))))
    with access.services.opened.get(access.collection.id) as opened:
        return {found.id for found in opened.store.list_documents(wanted, limit=len(asked), cursor=None).data}


def written_document(access: Access, document_id: str) -> Document:
    """Return a document that the request itself has written, inside the key's filter or not."""
    with access.services.opened.get(access.collection.id) as opened:
        document = opened.store.document(document_id)
    if document is None:
        raise NotFound(f"the document {document_id[:256]!r} was deleted meanwhile")
    return document


def visible_job(services: Services, principal: Principal, job_id: str) -> Job:
    """Return the job, or raise the `NotFound` that tells nothing of other tenants."""
    job = services.jobs.get(job_id)
    if job is not None and principal.may_see(job.collection_id):
        check_role(principal, Role.INGEST)
        for seen in visible_jobs(services, principal, [job]):
            return seen
    raise NotFound(f"there is no job {job_id[:100]!r}")


def visible_jobs(services: Services, principal: Principal, jobs: Iterable[Job]) -> list[Job]:
    """Return those of the key's collections' jobs whose document it sees, without the ids of others.

    A job that made a version which the key would not have seen, or worked on a document that had the id before, is
    hidden too.
    """
    if principal.filter is None:
        return list(jobs)
    return [without_hidden_ids(services, principal, job) for job in jobs if _is_visible(services, principal, job)]


def _is_visible(services: Services, principal: Principal, job: Job) -> bool:
    collection = services.collections.by_id(job.collection_id)
    if collection is None or job.document_id is None:
        return False
    access = Access(services, principal, collection)
    document = find_document(access, job.document_id)
    if document is None or job.created_at < document.created_at:
        return False
    version = (job.result or {}).get("version")
    with services.opened.get(collection.id) as opened:
        return version is None or version_of(opened.store, document.id, version, forced_filter(access)) is not None


def without_hidden_ids(services: Services, principal: Principal, job: Job) -> Job:
    """Return the job without the ids of documents that the key does not see."""
    named = (job.result or {}).get("duplicate_of")
    if principal.filter is None or not named:
        return job
    seen = _seen_of(services, principal, job, named)
    return replace(job, result={**(job.result or {}), "duplicate_of": [found for found in named if found in seen]})


def _seen_of(services: Services, principal: Principal, job: Job, document_ids: Iterable[str]) -> set[str]:
    collection = services.collections.by_id(job.collection_id)
    return set() if collection is None else visible_ids(Access(services, principal, collection), document_ids)


def refuse_hidden_document(access: Access, document_id: str) -> None:
    """Raise `NotFound` for a write to a document that is there but that the key does not see."""
    if access.principal.filter is None:
        return
    with access.services.opened.get(access.collection.id) as opened:
        is_there = opened.store.document(document_id) is not None
    if is_there and find_document(access, document_id, with_ended=True) is None:
        raise _absent(document_id)


def narrowed(access: Access, asked: Filter | None) -> Filter | None:
    """Return the caller's filter, if any, within the key's."""
    return forced_filter(access) if asked is None else narrowed_filter(access, asked)


def narrowed_filter(access: Access, asked: Filter) -> Filter:
    """Return the caller's filter within the key's."""
    forced = forced_filter(access)
    return asked if forced is None else And((forced, asked))
