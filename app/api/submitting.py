"""Hand documents to `ingest` and tell what became of them: one write path behind put, original, upload and batch."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from app.api.dependencies import Access
from app.api.presenting import submitted_reply
from app.api.problems import raw_problem_response
from app.api.replies import current_request_id, reply
from app.api.schemas.documents import MEDIA_TYPES, BatchReply, DocumentBody, ItemReply, SubmittedReply
from app.api.schemas.jobs import JobReply
from app.api.schemas.problem import Problem
from app.api.visibility import existing_document, refuse_hidden_document, visible_ids, written_document
from app.api.waiting import all_finished, applied, finished
from app.catalog.job import Job, JobState
from app.errors import Cancelled, EmptyDocument, FootnoteError
from app.ingestion.ingest import ALWAYS
from app.ingestion.submission import Precondition, Submission, Submitted
from app.telemetry import StageTimer

Prepare = Callable[[], Submission]


@dataclass(frozen=True, slots=True)
class Item:
    """One document of a batch: its id where it is known, and how its submission is made."""

    document_id: str | None
    prepare: Prepare


def content_of(body: DocumentBody) -> tuple[bytes, str]:
    """Return a document's bytes and media type; raise `EmptyDocument` for text of white space only.

    Lone surrogates stay in the bytes, so that the loader removes them as it does everywhere, with a warning.
    """
    if body.records is not None:
        lines = [json.dumps(record, ensure_ascii=False) for record in body.records]
        return "\n".join(lines).encode("utf-8", "surrogatepass"), MEDIA_TYPES["jsonl"]
    text = body.text if body.text is not None else "\n\n".join(chunk.text or "" for chunk in body.chunks or ())
    if not text.strip("\0 \t\r\n") or text.isspace():
        raise EmptyDocument("the document holds no text, only white space" if text else "the document holds no text")
    return text.encode("utf-8", "surrogatepass"), f"{MEDIA_TYPES[body.format or 'text']}; charset=utf-8"


def submit(access: Access, prepare: Prepare, precondition: Precondition = ALWAYS) -> Submitted:
    """Submit one document, which must be new or one that the key sees."""
    submission = prepare()
    refuse_hidden_document(access, submission.document_id)
    return access.services.ingestion.submit(access.collection, submission, precondition)


async def answer_one(access: Access, scope: Scope, accept: Callable[[], Submitted], wait: float | None) -> Response:
    """Accept a change and answer its document, its job, or the problem that the job met."""
    timer = StageTimer()
    submitted = await run_in_threadpool(accept)
    if submitted.job is None:
        return _document_response(_reply_without_job(access, submitted, timer), applied(wait))
    job = await finished(access.services, submitted.job, wait)
    headers = {"Location": f"/v1/jobs/{job.id}", **applied(wait)}
    if not job.is_finished:
        return reply(JobReply.model_validate(job), 202, headers)
    if job.state is JobState.SUCCEEDED:
        return _document_response(await run_in_threadpool(_reply_of_job, access, job), headers)
    return raw_problem_response(_problem_of(job), scope, headers)


async def answer_batch(access: Access, items: Sequence[Item], wait: float | None) -> Response:
    """Submit each document on its own and answer what became of each."""
    timer = StageTimer()
    outcomes = await run_in_threadpool(lambda: [_attempt(access, item) for item in items])
    queued = [outcome.job for outcome in outcomes if isinstance(outcome, Submitted) and outcome.job]
    jobs = {job.id: job for job in await all_finished(access.services, queued, wait)}

    def results() -> list[ItemReply]:
        return [
            _item_reply(access, index, item.document_id, outcome, jobs, timer)
            for index, (item, outcome) in enumerate(zip(items, outcomes, strict=True))
        ]

    body = BatchReply(results=await run_in_threadpool(results), request_id=current_request_id())
    is_pending = any(result.outcome == "pending" for result in body.results)
    return reply(body, 202 if is_pending else 200, applied(wait))


def _attempt(access: Access, item: Item) -> Submitted | FootnoteError:
    try:
        return submit(access, item.prepare)
    except FootnoteError as error:
        return error


def _document_response(body: SubmittedReply, headers: dict[str, str]) -> Response:
    etag = {"ETag": body.etag} if body.etag else {}
    return reply(body, _status(body), headers | etag)


def _status(body: SubmittedReply) -> int:
    return 201 if body.outcome == "created" else 200


def _reply_without_job(access: Access, submitted: Submitted, timer: StageTimer) -> SubmittedReply:
    return submitted_reply(
        submitted.document,
        access.collection.name,
        outcome=submitted.outcome,
        timings_ms=timer.milliseconds(),
        duplicate_of=_seen(access, submitted.duplicate_of),
    )


def _reply_of_job(access: Access, job: Job) -> SubmittedReply:
    result: dict[str, Any] = job.result or {}
    document = written_document(access, job.document_id or "")
    if document.version != result["version"]:
        # Another write came after the caller's own.
        document = existing_document(access, document.id)
    return submitted_reply(
        document,
        access.collection.name,
        outcome=result["outcome"],
        embedded=result["chunks"]["embedded"],
        timings_ms=result["timings_ms"],
        duplicate_of=_seen(access, result["duplicate_of"]),
    )


def _seen(access: Access, document_ids: Sequence[str]) -> list[str]:
    """Return the ids that the key may know, in the same order."""
    seen = visible_ids(access, document_ids)
    return [document_id for document_id in document_ids if document_id in seen]


def _problem_of(job: Job) -> dict[str, Any]:
    return job.error or Cancelled("the job was cancelled before its document was ready").problem()


def _item_reply(
    access: Access,
    index: int,
    document_id: str | None,
    outcome: Submitted | FootnoteError,
    jobs: dict[str, Job],
    timer: StageTimer,
) -> ItemReply:
    if isinstance(outcome, FootnoteError):
        return _failed_item(index, document_id, None, outcome.problem())
    if outcome.job is None:
        return _finished_item(index, None, _reply_without_job(access, outcome, timer))
    job = jobs[outcome.job.id]
    if job.state is JobState.SUCCEEDED:
        try:
            return _finished_item(index, job.id, _reply_of_job(access, job))
        except FootnoteError as error:
            return _failed_item(index, document_id, job.id, error.problem())
    if job.is_finished:
        return _failed_item(index, document_id, job.id, _problem_of(job))
    return ItemReply(
        index=index,
        id=document_id,
        status=202,
        outcome="pending",
        job_id=job.id,
        duplicate_of=_seen(access, outcome.duplicate_of),
        warnings=[],
        error=None,
    )


def _finished_item(index: int, job_id: str | None, body: SubmittedReply) -> ItemReply:
    return ItemReply(
        index=index,
        id=body.id,
        status=_status(body),
        outcome=body.outcome,
        job_id=job_id,
        duplicate_of=body.duplicate_of,
        warnings=body.warnings,
        error=None,
    )


def _failed_item(index: int, document_id: str | None, job_id: str | None, problem: dict[str, Any]) -> ItemReply:
    return ItemReply(
        index=index,
        id=document_id,
        status=problem["status"],
        outcome="failed",
        job_id=job_id,
        duplicate_of=[],
        warnings=[],
        error=Problem.model_validate(problem),
    )
