"""Do an ingest job: load and cut in a child process, embed in batches, write one transaction.

The version that is ready answers until the new one is committed, and stays when anything fails.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.claims import attempts_exhausted
from app.catalog.collections import Collection
from app.catalog.job import Job
from app.domain import Chunk, Document, DocumentState, Extraction, Metadata, Notice
from app.errors import Cancelled, DocumentOverQuota, FootnoteError, QuotaExceeded, Reembedded
from app.indexes.languages import detect_language, is_language, stemmed_language
from app.indexes.opening import OpenCollection
from app.inference.port import Embedder
from app.ingestion import attachments
from app.ingestion.alignment import KnownPiece
from app.ingestion.attachments import Attached
from app.ingestion.describe import describe, is_incomplete
from app.ingestion.embedding import EmbeddedChunks, embed_chunks
from app.ingestion.group import join_sentences
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport, LoadLimits, Prepared, PrepareRequest
from app.ingestion.quotas import Quotas
from app.ingestion.sources import Original
from app.ingestion.submission import (
    INCOMPLETE,
    JobPayload,
    chunking_of,
    chunking_options,
    context_options,
    is_made_by,
    normalisation_options,
    register,
)
from app.ingestion.written_contexts import ContextWriter
from app.settings import Settings
from app.stores.port import CollectionStore
from app.stores.prepared import PreparedDocument
from app.telemetry import counters

PIECES_AT_ONCE = 1000

QUICK_BYTES = 20_000
"""A smaller document is ready before anyone reads that it is in work, which would cost a commit to say."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One job with everything it works on."""

    ingestion: Ingestion
    collection: Collection
    opened: OpenCollection
    document_id: str
    payload: JobPayload
    report: JobReport

    @property
    def store(self) -> CollectionStore:
        return self.opened.store

    @property
    def path(self) -> Path:
        return self.ingestion.originals_of(self.opened).path(self.payload.original)


def run_ingest(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> dict[str, Any]:
    """Do the job up to the committed version and return its result; the caller then brings the index up.

    Raises the `FootnoteError` that says why it failed, after the document's state tells the same.
    """
    collection = ingestion.collections.by_id(job.collection_id)
    if collection is None or job.document_id is None:
        raise Cancelled("the collection was deleted")
    task = _Task(ingestion, collection, opened, job.document_id, JobPayload(**job.payload), report)
    registration = _registration(task)
    try:
        # A delete cancels its document's jobs first: one that came before `register_document` shows here.
        report.stage("load")
        if job.exhausted:
            raise attempts_exhausted(ingestion.settings.job_attempts)
        while True:
            try:
                return _work(task, job, registration)
            except Reembedded:
                # The collection moved to another model meanwhile, whose vectors it has from now on.
                continue
    except Cancelled:
        task.store.drop_staged(job.id)
        ingestion.forget_unmade(task.store, job)
        raise
    except FootnoteError as error:
        task.store.set_state(task.document_id, registration, "failed", error.problem(), error.extra.get("report"))
        raise


def _registration(task: _Task) -> int:
    known = task.store.document(task.document_id)
    if known is not None and known.state in (DocumentState.PENDING, DocumentState.READY):
        # `submit` has registered it. Only a retry comes after a failure or a deletion.
        return known.key
    most = Quotas.of(task.collection).documents
    return register(task.store, task.document_id, task.payload, most_documents=most)


def _work(task: _Task, job: Job, registration: int) -> dict[str, Any]:
    before = task.store.document(task.document_id)
    is_written = before is not None and before.version > 0 and before.etag == task.payload.etag
    is_written = is_written and is_made_by(
        task.store.settings_hash(task.document_id),
        task.payload.settings_hash,
        has_language_model=task.ingestion.language_model is not None,
    )
    if before and is_written and not attachments.missing(before, task.store):
        # Either it was sent twice, or an earlier attempt died between its commit and its end.
        first_time = "created" if before.version == 1 else "updated"
        return _result(task, before, "unchanged" if job.attempt == 1 else first_time, embedded=0)
    if not is_written:
        # Checked again here, where jobs of one document run one after the other: of two writers one must lose.
        task.payload.precondition.check(task.document_id, before if before and before.version else None)
    if task.path.stat().st_size > QUICK_BYTES:
        task.store.set_state(task.document_id, registration, "processing")
    embedder = _embedder(task)
    request = _request(task, embedder)
    parsed = task.ingestion.parsers.prepare(request, task.report)
    try:
        prepared = join_sentences(parsed, request, partial(_compared, task, embedder))
        return _write(task, job, registration, before, prepared, embedder)
    finally:
        for file in parsed.attachments:
            file.path.unlink(missing_ok=True)


def _write(
    task: _Task, job: Job, registration: int, before: Document | None, prepared: Prepared, embedder: Embedder
) -> dict[str, Any]:
    # What cannot be written need not be embedded.
    Quotas.of(task.collection).check_chunks(len(_children(prepared)), before, task.store)
    prepared, contexts = _described(task, prepared, embedder)
    embedded = embed_chunks(
        _children(prepared),
        store=task.store,
        embedder=embedder,
        report=task.report,
        enhanced=task.collection.indexing == "enhanced",
    )
    task.report.stage("write")
    attached, notices = _admitted(task, attachments.identified(prepared.attachments, task.document_id, task.store))
    told = replace(prepared.extraction, warnings=(*prepared.extraction.warnings, *notices))
    prepared = replace(prepared, extraction=told)
    document = task.store.replace_document(_version(task, registration, prepared, embedded, attached, embedder))
    task.store.drop_staged(job.id)
    counters.add("documents_ingested")
    submitted = _submit_attachments(task, before, prepared, attached)
    outcome = "updated" if before and before.version else "created"
    return _result(task, document, outcome, embedded=embedded.embedded) | contexts | submitted


def _admitted(task: _Task, attached: Sequence[Attached]) -> tuple[dict[Attached, Original], list[Notice]]:
    """Store the attachments that the quotas have room for; return them, and a warning of each other."""
    most = Quotas.of(task.collection).documents
    room = math.inf if most is None else most - sum(task.store.stats().documents.values())
    originals = task.ingestion.originals_of(task.opened)
    admitted: dict[Attached, Original] = {}
    notices: list[Notice] = []
    for each in attached:
        is_new = task.store.document(each.id) is None
        if is_new and room <= 0:
            notices.append(_over_quota(each, f"the collection holds {most}, as many as its quota allows"))
            continue
        try:
            admitted[each] = originals.adopt(each.file.path)
        except (QuotaExceeded, DocumentOverQuota) as error:
            notices.append(_over_quota(each, error.detail))
        else:
            room -= is_new
    return admitted, notices


def _over_quota(attached: Attached, reason: str) -> Notice:
    name = attached.file.name
    return Notice("attachment_over_quota", f"the attachment {name!r} is no document: {reason}", {"name": name})


def _children(prepared: Prepared) -> list[Chunk]:
    return [chunk for chunk in prepared.chunks if chunk.kind == "child"]


def _described(task: _Task, prepared: Prepared, embedder: Embedder) -> tuple[Prepared, dict[str, Any]]:
    """Return the document with the contexts that its collection wants, and what the job's result tells of them."""
    if task.collection.contextualizer != "llm":
        return prepared, {}
    settings = task.ingestion.settings
    prepared, cost = describe(
        prepared,
        title=_title(task, prepared.extraction),
        document_id=task.document_id,
        writer=ContextWriter(
            task.ingestion.language_model, settings.contextualizer_tokens, settings.contextualizer_requests
        ),
        embedder=embedder,
        store=task.store,
        report=task.report,
    )
    return prepared, {"contexts": dict(cost)}


def _title(task: _Task, extraction: Extraction) -> str:
    return task.payload.title or extraction.title or task.payload.filename or ""


def _submit_attachments(
    task: _Task, before: Document | None, prepared: Prepared, attached: Mapping[Attached, Original]
) -> dict[str, Any]:
    """Submit what came inside the document, and delete what came inside the version before but not inside this one.

    Returns what the job's result tells of them: the documents and their jobs.
    """
    inherited = attachments.inherited_metadata(task.payload, prepared.extraction.metadata)
    told = []
    for each, original in attached.items():
        submission = each.submission(original, task.document_id, task.payload, inherited)
        job = task.ingestion.submit(task.collection, submission).job
        told.append({"document_id": each.id, "job_id": job.id if job else None})
    present = {each.id for each in attached}
    over = set(attachments.direct(before, task.store)) - present
    is_deleted = bool(attached) and task.store.document(task.document_id) is None
    if over or is_deleted:
        task.ingestion.delete(task.collection, [*over, *(present if is_deleted else ())])
    if is_deleted:
        raise Cancelled("the document was deleted meanwhile")
    return {attachments.ATTACHMENTS: told} if told else {}


def _compared(task: _Task, embedder: Embedder, sentences: Sequence[Chunk]) -> NDArray[np.float32]:
    """Return the vectors of sentences that are only compared; those that are staged are not asked for again."""
    compared = embed_chunks(sentences, store=task.store, embedder=embedder, report=task.report, stage="compare")
    return compared.vectors


def _embedder(task: _Task) -> Embedder:
    """Return the collection's embedder, whose space becomes the collection's with its first document."""
    fixed = task.store.embedding_space()
    embedder = task.ingestion.embedders.of_vectors(fixed, task.collection.embedding_model)
    if fixed is None:
        task.store.set_embedding_space(embedder.space)
    return embedder


def _request(task: _Task, embedder: Embedder) -> PrepareRequest:
    return PrepareRequest(
        path=task.path,
        declared=task.payload.media_type,
        filename=task.payload.filename,
        password=task.payload.password,
        title=task.payload.title,
        chunking=chunking_options(task.collection, task.payload.chunking),
        token_counter=embedder.token_counter,
        window_tokens=embedder.window_tokens,
        limits=load_limits(task.ingestion.settings),
        normalisation=normalisation_options(task.collection),
        attachments_folder=task.ingestion.spool if task.payload.depth < attachments.MAX_DEPTH else None,
        contexts=context_options(task.collection, task.ingestion.settings),
        known=_known_pieces(task),
    )


def _cut_by(task: _Task) -> dict[str, Any]:
    """Return how the document is cut, as its report tells."""
    chosen = chunking_of(task.collection, task.payload.chunking)
    return {name: value for name, value in chosen.items() if name != "chunks"}


def _known_pieces(task: _Task) -> tuple[KnownPiece, ...]:
    """Return the chunks of the present version if it was cut in the same way."""
    present = task.store.document(task.document_id)
    if present is None or not present.version or (present.extraction or {}).get("chunking") != _cut_by(task):
        return ()
    pieces: list[KnownPiece] = []
    after: int | None = None
    while page := task.store.chunks(task.document_id, limit=PIECES_AT_ONCE, after=after):
        pieces += [KnownPiece.of(chunk.start, chunk.text) for chunk in page]
        after = page[-1].ordinal
    return tuple(pieces)


def load_limits(settings: Settings) -> LoadLimits:
    """Return what parsing one file may cost."""
    return LoadLimits(
        max_pages=settings.max_pages,
        max_characters=settings.max_characters,
        max_chunks=settings.max_chunks,
        parse_timeout_seconds=settings.parse_timeout_seconds,
        parse_memory_bytes=settings.parse_memory_bytes,
        ocr_page_seconds=settings.ocr_page_seconds,
        max_ocr_pages=settings.max_ocr_pages,
        max_attachments=settings.max_attachments,
    )


def _version(
    task: _Task,
    registration: int,
    prepared: Prepared,
    embedded: EmbeddedChunks,
    attached: Mapping[Attached, Original],
    embedder: Embedder,
) -> PreparedDocument:
    payload, extraction = task.payload, prepared.extraction
    in_file = dict(extraction.metadata)
    if attached:
        in_file[attachments.ATTACHMENTS] = [each.id for each in attached]
    found = {} if payload.metadata_is_whole else in_file
    report = extraction.report() | {"declared_media_type": payload.media_type, "given_title": payload.title}
    report["chunking"] = _cut_by(task)
    report |= attachments.report(attached) | attachments.descent(payload)
    if in_file:
        report["metadata"] = in_file
    return PreparedDocument(
        id=task.document_id,
        registration=registration,
        etag=payload.etag,
        title=_title(task, extraction),
        metadata=found | payload.metadata,
        source_type=extraction.source_type,
        media_type=extraction.media_type,
        filename=payload.filename,
        content_hash=payload.original,
        # What is less than its settings want is made again when it is sent again.
        settings_hash=payload.settings_hash + (INCOMPLETE if is_incomplete(extraction) else ""),
        chunking=payload.chunking,
        text=extraction.text,
        pages=extraction.pages,
        extraction=report,
        warnings=extraction.warnings,
        expires_at=payload.expires,
        chunks=prepared.chunks,
        vectors=embedded.vectors,
        content_vectors=embedded.content_vectors,
        space=embedder.space,
        most_chunks=Quotas.of(task.collection).chunks,
        keep_versions=task.collection.keep_versions,
        language=_language(task, extraction.text, found | payload.metadata),
    )


def _language(task: _Task, text: str, metadata: Metadata) -> str | None:
    """Return the language to stem by: what the metadata says, else the collection's, else what the text is in."""
    given = metadata.get("language")
    if not isinstance(given, str) or not is_language(given):
        chosen = task.collection.language
        given = detect_language(text) if chosen == "auto" else chosen
    return None if given is None else stemmed_language(given)


def _result(task: _Task, document: Document, outcome: str, *, embedded: int) -> dict[str, Any]:
    same = task.store.documents_with_content(task.payload.original)
    return {
        "outcome": outcome,
        "version": document.version,
        "etag": document.etag,
        "chunks": {
            "total": document.chunk_count,
            "embedded": embedded,
            "reused": document.chunk_count - embedded,
        },
        "duplicate_of": [found for found in same if found != document.id],
        "warnings": [dict(warning) for warning in document.warnings],
    }
