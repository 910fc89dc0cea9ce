"""The ways in: a text, a file, many files, many texts. All go through `submitting`."""

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from app.api.declared import accepted, binary_body, keyed
from app.api.dependencies import Access, IngestAccess
from app.api.document_chunking import body_chunking, own_chunking, query_chunking
from app.api.document_rules import DocumentId, check_document_id, check_metadata, id_from_filename
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.json_body import is_unicode, parse_json, refuse_lone_surrogates
from app.api.preconditions import WritePrecondition
from app.api.problems import validation_problem
from app.api.schemas.documents import (
    UPLOAD_SCHEMA,
    Batch,
    BatchDocument,
    BatchReply,
    DocumentBody,
    SubmittedReply,
    Title,
    UploadInfo,
)
from app.api.schemas.jobs import JobReply
from app.api.schemas.strict import Timestamp
from app.api.strict_route import StrictRoute
from app.api.submitting import Item, answer_batch, answer_one, content_of, submit
from app.api.uploads import Form, Spool, SpooledFile, spool_body, spool_form
from app.api.waiting import PreferredWait
from app.domain import Metadata
from app.errors import FieldError, InvalidRequest
from app.ingestion.attachment_names import told_filename
from app.ingestion.submission import Submission

OCTET_STREAM = "application/octet-stream"

router = APIRouter(prefix="/v1/collections/{collection}/documents", route_class=StrictRoute, tags=["documents"])

_WRITE_ERRORS = keyed(403, 404, 409, 412, 413, 415, 502, 507)
_WRITTEN = (
    _WRITE_ERRORS
    | {201: {"model": SubmittedReply, "description": "The document is new and ready"}}
    | accepted(JobReply, "The document is safe and in work")
)
_BATCH_DOCUMENT = TypeAdapter(BatchDocument)
_UPLOAD_INFO = TypeAdapter(UploadInfo)
_MANY = keyed(403, 404, 409, 413, 415, 507) | accepted(BatchReply, "Some are in work")


@dataclass(frozen=True, slots=True)
class RawDocument:
    """What a request with raw bytes says of them beside the bytes."""

    filename: str | None
    media_type: str | None
    title: str | None
    metadata: Metadata
    expires_at: datetime | None
    password: str | None = field(repr=False)
    chunking: dict[str, Any] | None


async def raw_document(
    request: Request,
    access: IngestAccess,
    document_id: DocumentId,
    filename: Annotated[str | None, Query(max_length=1000, description="The file's name")] = None,
    title: Annotated[Title | None, Query()] = None,
    metadata: Annotated[str | None, Query(description="A JSON object", examples=['{"team":"hr"}'])] = None,
    expires_at: Annotated[Timestamp | None, Query()] = None,
    chunking: Annotated[
        str | None, Query(description="How it is cut, as a JSON object", examples=['{"strategy":"none"}'])
    ] = None,
    x_document_password: Annotated[
        str | None, Header(alias="X-Document-Password", description="Of an encrypted file; kept until it is read")
    ] = None,
) -> RawDocument:
    """Return what query and headers say, checked before the first byte of the body is read."""
    check_document_id(document_id, "path:document_id")
    given: Any = {} if metadata is None else parse_json(metadata.encode(), "query:metadata")
    if not isinstance(given, dict):
        detail = "metadata must be a JSON object"
        raise InvalidRequest(detail, errors=[FieldError("query:metadata", "dict_type", detail)])
    media_type = request.headers.get("content-type", "").strip()
    return RawDocument(
        filename=filename or _disposition_filename(request.headers.get("content-disposition")),
        media_type=None if media_type.lower() in ("", OCTET_STREAM) else media_type,
        title=title,
        metadata=check_metadata(given, access.services.settings, "query:metadata"),
        expires_at=expires_at,
        password=None if x_document_password is None else _from_header(x_document_password),
        chunking=await run_in_threadpool(query_chunking, access, chunking),
    )


Raw = Annotated[RawDocument, Depends(raw_document)]


async def spooled_body(request: Request, access: IngestAccess, _raw: Raw) -> AsyncIterator[Path]:
    """Yield the body as a file."""
    spool = Spool(access.services.ingestion.spool)
    try:
        yield await spool_body(request, spool, access.services.settings.max_upload_bytes)
    finally:
        await run_in_threadpool(spool.close)


async def spooled_form(request: Request, access: IngestAccess) -> AsyncIterator[Form]:
    """Yield the parts of the form as files."""
    spool, settings = Spool(access.services.ingestion.spool), access.services.settings
    try:
        yield await spool_form(request, spool, limit=settings.max_upload_bytes, most_files=settings.max_batch_documents)
    finally:
        await run_in_threadpool(spool.close)


@router.put(
    "/{document_id}",
    operation_id="documents.put",
    summary="Put a document as text or records",
    response_model=SubmittedReply,
    responses=_WRITTEN,
)
async def put_document(
    request: Request,
    access: IngestAccess,
    document_id: DocumentId,
    body: DocumentBody,
    precondition: WritePrecondition,
    wait: PreferredWait,
) -> Response:
    """Make or replace the document; the version before answers until the new one is ready."""
    check_document_id(document_id, "path:document_id")
    check_metadata(body.metadata, access.services.settings)
    chunking = await run_in_threadpool(body_chunking, access, body)
    accept = partial(submit, access, partial(_text_submission, access, document_id, body, chunking), precondition)
    return await answer_one(access, request.scope, accept, wait)


@router.put(
    "/{document_id}/original",
    operation_id="documents.put_original",
    summary="Put a document as the bytes of a file",
    response_model=SubmittedReply,
    responses=_WRITTEN,
    openapi_extra=binary_body(OCTET_STREAM),
)
async def put_original(
    request: Request,
    access: IngestAccess,
    document_id: DocumentId,
    raw: Raw,
    file: Annotated[Path, Depends(spooled_body)],
    precondition: WritePrecondition,
    wait: PreferredWait,
) -> Response:
    """Make or replace the document from a file; `Content-Type` is its type, which its content may prove wrong."""

    def prepare() -> Submission:
        return Submission(
            document_id,
            access.services.ingestion.originals(access.collection.id).adopt(file),
            media_type=raw.media_type,
            filename=raw.filename,
            title=raw.title,
            metadata=raw.metadata,
            expires_at=raw.expires_at,
            password=raw.password,
            chunking=raw.chunking,
        )

    return await answer_one(access, request.scope, partial(submit, access, prepare, precondition), wait)


@router.post(
    "",
    operation_id="documents.batch",
    summary="Put many documents as text or records",
    response_model=BatchReply,
    responses=_MANY,
)
async def put_batch(access: IngestAccess, body: Batch, wait: PreferredWait, idempotency: IdempotencyKey) -> Response:
    """Put each document on its own; one that is wrong does not fail the others."""
    most = access.services.settings.max_batch_documents
    if len(body.documents) > most:
        detail = f"{len(body.documents)} documents are above the maximum of {most} (FOOTNOTE_MAX_BATCH_DOCUMENTS)"
        raise InvalidRequest(detail, errors=[FieldError("/documents", "too_long", detail)])
    items = _unique([_batch_item(access, index, raw) for index, raw in enumerate(body.documents)], "/documents/{}/id")
    return await answered_once(idempotency, lambda: answer_batch(access, items, wait), access.collection.id)


@router.post(
    "/upload",
    operation_id="documents.upload",
    summary="Upload many files",
    response_model=BatchReply,
    responses=_MANY,
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": UPLOAD_SCHEMA}}},
)
async def upload(
    access: IngestAccess,
    form: Annotated[Form, Depends(spooled_form)],
    wait: PreferredWait,
    idempotency: IdempotencyKey,
) -> Response:
    """Put each `files` part as a document; `info` may give metadata for all and ids by file name."""
    info = _upload_info(access, form)
    chunking = await run_in_threadpool(own_chunking, access, info.chunking, "/info/chunking")
    items = _unique([_upload_item(access, file, info, chunking) for file in form.files], "/files/{}")
    payload = b"" if idempotency.key is None else await run_in_threadpool(_form_digest, form)
    return await answered_once(
        idempotency, lambda: answer_batch(access, items, wait), access.collection.id, payload=payload
    )


def _text_submission(
    access: Access, document_id: str, body: DocumentBody, chunking: dict[str, Any] | None
) -> Submission:
    content, media_type = content_of(body)
    return Submission(
        document_id,
        access.services.ingestion.originals(access.collection.id).write(content),
        media_type=media_type,
        title=body.title,
        metadata=body.metadata,
        expires_at=body.expires_at,
        chunking=chunking,
    )


def _batch_item(access: Access, index: int, raw: Any) -> Item:
    prefix = f"/documents/{index}"

    def prepare() -> Submission:
        refuse_lone_surrogates(raw, prefix)
        try:
            document = _BATCH_DOCUMENT.validate_python(raw)
        except ValidationError as error:
            raise validation_problem(error.errors(), raw, prefix) from None
        check_document_id(document.id, f"{prefix}/id")
        check_metadata(document.metadata, access.services.settings, f"{prefix}/metadata")
        return _text_submission(access, document.id, document, body_chunking(access, document, prefix))

    named = raw.get("id") if isinstance(raw, dict) else None
    return Item(named if isinstance(named, str) and is_unicode(named) else None, prepare)


def _upload_info(access: Access, form: Form) -> UploadInfo:
    if not form.files:
        detail = "give at least one file as a part named `files`"
        raise InvalidRequest(detail, errors=[FieldError("/files", "missing", detail)])
    if form.info is None:
        return UploadInfo()
    raw = parse_json(form.info, "/info")
    try:
        info = _UPLOAD_INFO.validate_python(raw)
    except ValidationError as error:
        raise validation_problem(error.errors(), raw, "/info") from None
    for name in info.ids.keys() - {file.filename for file in form.files}:
        detail = f"there is no file named {name[:200]!r} in this upload"
        raise InvalidRequest(detail, errors=[FieldError("/info/ids", "unknown_file", detail)])
    check_metadata(info.metadata, access.services.settings, "/info/metadata")
    return info


def _upload_item(access: Access, file: SpooledFile, info: UploadInfo, chunking: dict[str, Any] | None) -> Item:
    filename = file.filename or ""
    document_id = info.ids.get(filename) or id_from_filename(filename)

    def prepare() -> Submission:
        check_document_id(document_id, "/info/ids")
        return Submission(
            document_id,
            access.services.ingestion.originals(access.collection.id).adopt(file.path),
            media_type=None if file.media_type == OCTET_STREAM else file.media_type,
            filename=filename,
            metadata=info.metadata,
            chunking=chunking,
        )

    return Item(document_id, prepare)


def _unique(items: list[Item], pointer: str) -> list[Item]:
    """Let each later item of the same id fail, since its order among the jobs would decide what stays."""
    seen: set[str] = set()
    checked: list[Item] = []
    for index, item in enumerate(items):
        if item.document_id in seen:
            item = Item(item.document_id, _refusal(item.document_id, pointer.format(index)))
        elif item.document_id is not None:
            seen.add(item.document_id)
        checked.append(item)
    return checked


def _refusal(document_id: str, pointer: str) -> Callable[[], Submission]:
    def refuse() -> Submission:
        detail = f"the id {document_id!r} stands more than once in this request"
        raise InvalidRequest(detail, code="duplicate_id", errors=[FieldError(pointer, "duplicate_id", detail)])

    return refuse


def _form_digest(form: Form) -> bytes:
    digest = hashlib.sha256(form.info or b"")
    for file in form.files:
        digest.update(repr((file.filename, file.media_type)).encode())
        with file.path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.digest()


def _disposition_filename(header: str | None) -> str | None:
    if header is None:
        return None
    message = Message()
    message["Content-Disposition"] = _from_header(header)
    return told_filename(message)


def _from_header(value: str) -> str:
    """Return a header's text, which arrives as Latin-1 although clients send UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
