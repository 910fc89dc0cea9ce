"""The error tree: each class has a status, a stable code and a title; one handler at the door renders them.

FootnoteError
├── Unauthenticated 401 · InsufficientScope 403 · NotFound 404 · MethodNotAllowed 405
├── Conflict 409 ── NameTaken, EmbeddingModelMismatch (Reembedded), QuotaExceeded
├── PreconditionFailed 412 (Overtaken) · PayloadTooLarge 413 (DocumentOverQuota) · UnsupportedMediaType 415
├── InvalidRequest 422 ── UnknownField, InvalidCursor, UrlBlocked
├── UnusableArchive 422 ── DamagedArchive, UnsupportedArchive
├── UnusableDocument 422 ── EmptyDocument, UndecodableText, NoExtractableText, DamagedDocument,
│                           PasswordRequired, DocumentLimitExceeded
├── TooManyRequests 429 ── QueueFull
├── UpstreamRejected 502 ── UpstreamAuthentication
├── FetchFailed 502 (what a URL names did not come)
├── Unavailable 503 ── EmbeddingUnavailable, LanguageModelUnavailable, StoreBusy, StoreDamaged
├── StorageFull 507
├── Cancelled (a job was cancelled or overtaken by a delete)
├── JobAttemptsExhausted (a job whose process died each time it was tried)
└── Misconfigured (refuses to start)
"""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong value: a JSON pointer (or `query:`/`header:` and a name), a code and a sentence."""

    pointer: str
    code: str
    detail: str


class FootnoteError(Exception):
    """Carry a status, a stable code and sentences a caller can act on.

    `detail` says what was wrong with its value and what is allowed; `hint` says what to do next.
    `extra` is rendered into the problem object as it is, so it never holds a secret or an upstream's words.
    """

    status: ClassVar[int] = 500
    code: str = "internal_error"
    title: str = "Something went wrong on our side"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        errors: Sequence[FieldError] = (),
        retry_after: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.hint = hint
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.extra = dict(extra or {})

    def problem(self) -> dict[str, Any]:
        """Return the RFC 9457 members that stand in an answer, a job and a batch item alike."""
        body: dict[str, Any] = {
            "type": f"urn:footnote:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.hint:
            body["hint"] = self.hint
        if self.errors:
            body["errors"] = [{"pointer": e.pointer, "code": e.code, "detail": e.detail} for e in self.errors]
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        return body | self.extra


class Unauthenticated(FootnoteError):
    """No key, or one that is unknown, expired or revoked."""

    status, code, title = 401, "unauthenticated", "A valid key is needed"


class InsufficientScope(FootnoteError):
    """The key is of this tenant but its role does not allow the operation."""

    status, code, title = 403, "insufficient_scope", "This key may not do that"


class NotFound(FootnoteError):
    """Nothing of that name exists for this key; also everything of another tenant."""

    status, code, title = 404, "not_found", "Not found"


class MethodNotAllowed(FootnoteError):
    """The path exists but not with this method."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"


class Conflict(FootnoteError):
    """The state of the thing does not allow the operation."""

    status, code, title = 409, "conflict", "Conflict with the present state"


class NameTaken(Conflict):
    """A thing of that name exists already."""

    code, title = "name_taken", "The name is taken"


class EmbeddingModelMismatch(Conflict):
    """The configured model is not the one whose vectors the collection holds."""

    code, title = "embedding_model_mismatch", "The collection was embedded with another model"


class QuotaExceeded(Conflict):
    """A collection holds as much as its quota allows.

    409, since what is stored stands in the way: deleting some of it makes room, waiting (429) does not, and the key may
    do what it asked for (no 403).
    """

    code, title = "quota_exceeded", "A quota of the collection is used up"

    @classmethod
    def of(cls, quota: str, *, limit: int, used: int, needed: int) -> "QuotaExceeded":
        """Return the error that names the quota, its value and the present use."""
        return cls(
            f"the collection may hold {limit} {quota}; it holds {used}, and this needs {needed} more",
            hint=f"delete what is not needed, or have the admin key raise `quotas.{quota}`",
            extra={"quota": quota, "limit": limit, "used": used, "needed": needed},
        )


class Reembedded(EmbeddingModelMismatch):
    """The collection moved to another model while something was done with the one before."""


class PreconditionFailed(FootnoteError):
    """`If-Match` or `If-None-Match` does not hold."""

    status, code, title = 412, "precondition_failed", "The precondition does not hold"


class Overtaken(PreconditionFailed):
    """Another writer changed the document between its reading and its writing."""


class PayloadTooLarge(FootnoteError):
    """The body is above a limit; the detail names the setting."""

    status, code, title = 413, "payload_too_large", "The body is too large"


class DocumentOverQuota(PayloadTooLarge):
    """One document is larger than its collection allows; 413, since no deletion makes room for it."""

    code, title = "quota_exceeded", "The document is above the collection's quota"

    @classmethod
    def of_size(cls, size: int, limit: int) -> "DocumentOverQuota":
        """Return the error that names the quota and its value."""
        return cls(
            f"the document has {size} bytes; this collection allows {limit} a document",
            hint="split the document, or have the admin key raise `quotas.document_bytes`",
            extra={"quota": "document_bytes", "limit": limit, "needed": size},
        )


class UnsupportedMediaType(FootnoteError):
    """No loader reads this kind of file."""

    status, code, title = 415, "unsupported_media_type", "This kind of file is not read"


class InvalidRequest(FootnoteError):
    """A value is not allowed."""

    status, code, title = 422, "invalid_request", "The request is not valid"


class UnknownField(InvalidRequest):
    """A field, parameter or enum value that does not exist."""

    code, title = "unknown_field", "A name is not known"


class InvalidCursor(InvalidRequest):
    """A cursor that is none of the list's own."""

    code, title = "invalid_cursor", "The cursor is not one of this list"

    @classmethod
    def of_another_list(cls) -> "InvalidCursor":
        """Return the error that every list answers such a cursor with."""
        detail = "the cursor was not made by this list"
        return cls(
            detail,
            hint="use next_cursor of the page before as it is, or leave it out",
            errors=[FieldError("query:cursor", cls.code, detail)],
        )


class UrlBlocked(InvalidRequest):
    """A URL that this service does not call: it leads inside, or into a port or a scheme that is not allowed."""

    code, title = "url_blocked", "This URL is not called"


class UnusableArchive(FootnoteError):
    """An export or a backup that holds what none of ours holds, or more than is allowed."""

    status, code, title = 422, "unusable_archive", "The archive cannot be used"


class DamagedArchive(UnusableArchive):
    """An export or a backup that is not whole: its files are not those that were written."""

    code, title = "damaged_archive", "The archive is damaged"


class UnsupportedArchive(UnusableArchive):
    """An export or a backup that a newer release wrote."""

    code, title = "unsupported_archive", "The archive is of a newer release"


class UnusableDocument(FootnoteError):
    """The document cannot be ingested; each subclass says why."""

    status, code, title = 422, "unusable_document", "The document cannot be used"


class EmptyDocument(UnusableDocument):
    """The document holds no text at all."""

    code, title = "empty_document", "The document is empty"


class UndecodableText(UnusableDocument):
    """The bytes are text in no charset that fits all of them."""

    code, title = "undecodable_text", "The text cannot be decoded"


class NoExtractableText(UnusableDocument):
    """The file is sound but has no text layer."""

    code, title = "no_extractable_text", "The file has no text"


class DamagedDocument(UnusableDocument):
    """The file is broken beyond what its parser repairs, or the parser died on it."""

    code, title = "damaged_document", "The file is damaged"


class PasswordRequired(UnusableDocument):
    """The file is encrypted and the password is missing or wrong."""

    code, title = "password_required", "The file is encrypted"


class DocumentLimitExceeded(UnusableDocument):
    """Parsing went over a limit of time, memory, pages or size; the detail names the setting."""

    code, title = "document_limit_exceeded", "The document is over a limit"


class TooManyRequests(FootnoteError):
    """The key's rate is used up."""

    status, code, title = 429, "too_many_requests", "Too many requests"


class QueueFull(TooManyRequests):
    """More jobs wait than `FOOTNOTE_MAX_QUEUED_JOBS` allows."""

    code, title = "queue_full", "Too many jobs are waiting"


class UpstreamRejected(FootnoteError):
    """A configured model server answered with something that cannot be used."""

    status, code, title = 502, "upstream_rejected", "A model server's answer cannot be used"


class UpstreamAuthentication(UpstreamRejected):
    """A configured model server refused our key."""

    code, title = "upstream_auth", "A model server refused the configured key"


class FetchFailed(FootnoteError):
    """The server that a URL names did not give what it names; `extra` has its `http_status` where it answered."""

    status, code, title = 502, "fetch_failed", "The URL could not be fetched"


class Unavailable(FootnoteError):
    """Something this needs does not answer now."""

    status, code, title = 503, "unavailable", "Not available now"


class EmbeddingUnavailable(Unavailable):
    """The embedding model does not answer."""

    code, title = "embedding_unavailable", "The embedding model is not available"


class LanguageModelUnavailable(Unavailable):
    """The language model does not answer."""

    code, title = "language_model_unavailable", "The language model is not available"


class RerankUnavailable(Unavailable):
    """The reranker does not answer, or not in time."""

    code, title = "rerank_unavailable", "The reranker is not available"


class StoreBusy(Unavailable):
    """A writer held the collection longer than the busy timeout."""

    code, title = "store_busy", "The collection is busy"


class StoreDamaged(Unavailable):
    """A database of ours is missing or is not what SQLite wrote."""

    code, title = "store_damaged", "Stored data is damaged"


class StorageFull(FootnoteError):
    """The disk is full."""

    status, code, title = 507, "storage_full", "The disk is full"

    @classmethod
    def told_by(cls, error: BaseException) -> "StorageFull | None":
        """Return the error to raise for one of the operating system that means a full disk, `None` for any other."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls("the disk has no room for this", hint="free some space, then send it again")
        return None


class Cancelled(FootnoteError):
    """The job was cancelled, or its document was deleted or overtaken meanwhile."""

    status, code, title = 409, "cancelled", "The job was cancelled"


class JobAttemptsExhausted(FootnoteError):
    """The process that worked on the job died as often as `FOOTNOTE_JOB_ATTEMPTS` allows."""

    code, title = "job_attempts_exhausted", "The job was given up"


class Misconfigured(FootnoteError):
    """The settings do not fit together; the service refuses to start."""

    code, title = "misconfigured", "The configuration is not valid"
