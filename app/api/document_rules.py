"""What a document's id and metadata may be, with the place of what is wrong."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path

from app.api.problems import escape_pointer
from app.domain import Metadata
from app.errors import FieldError, InvalidRequest
from app.ingestion.attachment_names import without_unsafe
from app.settings import Settings

MAX_METADATA_DEPTH = 16

_CONTROL_OR_SLASH = re.compile(r"[\x00-\x1f\x7f-\x9f/\ud800-\udfff]")

DocumentId = Annotated[
    str, Path(description="1-256 characters without `/` and control characters", examples=["leave-2026"])
]


def check_document_id(document_id: str, pointer: str) -> str:
    """Return the id, or raise `InvalidRequest` that says what it may not hold."""
    reason = None
    if not 1 <= len(document_id) <= 256:
        reason = f"has {len(document_id)} characters; allowed are 1 to 256"
    elif _CONTROL_OR_SLASH.search(document_id):
        reason = "holds a slash or a control character"
    elif document_id in (".", ".."):
        reason = "is a name that paths use for themselves"
    if reason:
        detail = f"the document id {document_id[:100]!r} {reason}"
        raise InvalidRequest(detail, errors=[FieldError(pointer, "invalid_id", detail)])
    return document_id


def id_from_filename(filename: str) -> str:
    """Return a document id for a file's name: its last part, without what an id may not hold."""
    name = unicodedata.normalize("NFC", filename.replace("\\", "/").rsplit("/", 1)[-1])
    safe = without_unsafe(name)
    return safe[-256:] if safe.strip("._") else "file"


def check_metadata(metadata: Mapping[str, Any], settings: Settings, pointer: str = "/metadata") -> Metadata:
    """Return the metadata, or raise `InvalidRequest` that points at what is wrong."""
    _check_members(metadata, pointer, depth=1)
    size = len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "replace"))
    if size > settings.max_metadata_bytes:
        detail = (
            f"the metadata takes {size} bytes as JSON; the limit is {settings.max_metadata_bytes} "
            "(FOOTNOTE_MAX_METADATA_BYTES)"
        )
        raise InvalidRequest(detail, errors=[FieldError(pointer, "too_large", detail)])
    return metadata


def _check_members(value: Any, pointer: str, depth: int) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _wrong(pointer, "out_of_range", "whole numbers must fit into 64 bits")
    if not isinstance(value, (dict, list)):
        return
    if depth > MAX_METADATA_DEPTH:
        raise _wrong(pointer, "too_deep", f"metadata may nest {MAX_METADATA_DEPTH} levels")
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in members:
        member_pointer = f"{pointer}/{escape_pointer(str(name))}"
        _check_members(member, member_pointer, depth + 1)
        if depth == 1 and str(name).startswith("$"):
            raise _wrong(member_pointer, "reserved_name", "names that begin with $ are the service's")


def _wrong(pointer: str, code: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{pointer}: {reason}", errors=[FieldError(pointer, code, reason)])
