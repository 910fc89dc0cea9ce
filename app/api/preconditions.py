"""`If-Match` and `If-None-Match` of writes."""

import re
from typing import Annotated

from fastapi import Depends, Header

from app.errors import FieldError, InvalidRequest
from app.ingestion.submission import Precondition

_STRONG_TAG = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')

IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="Refuse a lost update: the document's present `ETag`, or `*`")
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="Only `*`: create, never replace", examples=["*"])
]


async def change_precondition(if_match: IfMatch = None) -> Precondition:
    """Return what must hold for a change or a deletion."""
    return Precondition(if_match=_tag(if_match))


async def write_precondition(if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> Precondition:
    """Return what must hold for a put."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise _wrong("If-None-Match", "only `*` is taken with a write")
    return Precondition(if_match=_tag(if_match), create_only=if_none_match is not None)


ChangePrecondition = Annotated[Precondition, Depends(change_precondition)]
WritePrecondition = Annotated[Precondition, Depends(write_precondition)]


def _tag(header: str | None) -> str | None:
    if header is None:
        return None
    tag = header.strip()
    if tag != "*" and not _STRONG_TAG.fullmatch(tag):
        raise _wrong("If-Match", 'must be one strong entity tag such as "sha256-…", or `*`')
    return tag


def _wrong(name: str, detail: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: {detail}", errors=[FieldError(f"header:{name}", "invalid_value", detail)])
