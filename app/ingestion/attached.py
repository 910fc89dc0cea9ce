"""Look at what came inside a document: keep what can be read, name what cannot. Runs in the process that parses."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.domain import Attachment, Extraction, Notice
from app.errors import FootnoteError
from app.ingestion.attachment_names import first_free, safe_name
from app.ingestion.detection import detect
from app.ingestion.loaders import image, ocr
from app.ingestion.port import LoadLimits, PrepareRequest
from app.ingestion.registry import LOADERS


def with_usable_attachments(extraction: Extraction, request: PrepareRequest) -> Extraction:
    """Return the extraction with the attachments that a loader reads, under names of their own; warn of each other."""
    if request.attachments_folder is None:
        return replace(extraction, attachments=())
    kept: list[Attachment] = []
    notices: list[Notice] = []
    for attachment in _named_apart(extraction.attachments):
        reason = _why_not(attachment, request.limits, len(kept))
        if reason is None:
            kept.append(attachment)
        else:
            detail = f"the attachment {attachment.name!r} is no document of its own: {reason}"
            notices.append(Notice("attachment_not_read", detail, {"name": attachment.name}))
    return replace(extraction, attachments=tuple(kept), warnings=(*extraction.warnings, *notices))


def _why_not(attachment: Attachment, limits: LoadLimits, already: int) -> str | None:
    if already >= limits.max_attachments:
        return f"there are more than {limits.max_attachments} attachments (FOOTNOTE_MAX_ATTACHMENTS)"
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(attachment.data)
            file.flush()
            media_type = detect(Path(file.name), attachment.name, attachment.media_type).media_type
    except FootnoteError as error:
        return error.detail
    if media_type not in LOADERS:
        return f"no loader reads {media_type}"
    if media_type in image.MEDIA_TYPES and not ocr.is_available(limits):
        return f"it is a picture; {ocr.hint_for_scans(limits)}"
    return None


def _named_apart(attachments: tuple[Attachment, ...]) -> Iterator[Attachment]:
    taken: set[str] = set()
    for attachment in attachments:
        name = first_free(safe_name(attachment.name), lambda candidate: candidate.casefold() in taken)
        taken.add(name.casefold())
        yield replace(attachment, name=name)
