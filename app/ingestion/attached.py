"""Look at what came inside a document: keep what can be read, name what cannot. Runs in the process that parses."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.domain import Attachment, Extraction, Notice
from app.errors import FootnoteError
from app.ingestion.detection import detect
from app.ingestion.loaders import image, ocr
from app.ingestion.port import LoadLimits, PrepareRequest
from app.ingestion.registry import LOADERS

_NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f/\\\ud800-\udfff\ufffd]+")
_LONGEST_NAME = 120


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
    """Yield the attachments under names that are no paths, each once."""
    taken: set[str] = set()
    for attachment in attachments:
        name = _shortened(_NOT_IN_A_NAME.sub("_", attachment.name).strip() or "attachment")
        stem, dot, extension = name.rpartition(".")
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem} ({number}){dot}{extension}" if stem else f"{extension} ({number})"
        taken.add(name.casefold())
        yield replace(attachment, name=name)


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    extension = Path(name).suffix[-12:]
    return name[: _LONGEST_NAME - len(extension)] + extension
