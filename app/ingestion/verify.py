"""The verb `verify`: compare a collection's store, indexes and originals, and name each difference."""

from collections.abc import Callable
from typing import Any

from app.catalog.job import Job
from app.indexes.opening import OpenCollection
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.ingestion.sources import Originals

MOST_DIFFERENCES = 1000
"""Differences that are listed; one more entry counts the rest."""

Difference = dict[str, Any]
"""`{kind, document_id, chunk_id, detail}`."""


def run_verify(ingestion: Ingestion, opened: OpenCollection, _job: Job, report: JobReport) -> dict[str, Any]:
    """Do a `verify` job."""
    found = find_differences(ingestion, opened, report)
    return {"clean": not found, "differences": found}


def find_differences(ingestion: Ingestion, opened: OpenCollection, report: JobReport | None = None) -> list[Difference]:
    """Return the differences between store, indexes and originals; writes that go on meanwhile are none."""
    stage, advance = (report.stage, report.advance) if report else (_unheard, _unheard)
    stage("store", total=sum(opened.store.stats().documents.values()), unit="documents")
    found = opened.store.verify(advance)
    stage("index")
    found += opened.verify()
    stage("originals")
    found += _original_differences(opened, ingestion.originals_of(opened), advance)
    rest = len(found) - MOST_DIFFERENCES
    return found if rest <= 0 else [*found[:MOST_DIFFERENCES], _difference("more", f"{rest} more are not listed")]


def _original_differences(
    opened: OpenCollection, originals: Originals, advance: Callable[[int], None]
) -> list[Difference]:
    suspects: list[str] = []
    for done, digest in enumerate(opened.store.content_hashes(), start=1):
        if not originals.is_whole(digest):
            suspects.append(digest)
        advance(done)
    # An original goes after the document that needed it, so what is needed still was never there.
    needed = set(opened.store.content_hashes()) if suspects else set()
    return [
        _difference("damaged_original", f"the original {digest} has other bytes")
        if originals.holds(digest)
        else _difference("missing_original", f"the original {digest} is not stored")
        for digest in suspects
        if digest in needed
    ]


def _difference(kind: str, detail: str) -> Difference:
    return {"kind": kind, "document_id": None, "chunk_id": None, "detail": detail}


def _unheard(*_: object, **__: object) -> None:
    """Tell nobody."""
