"""JSON lines: one block for each record, a line `path: value` for each of its values."""

from typing import Any

from app.domain import Extraction, Notice
from app.errors import DamagedDocument
from app.ingestion.loaders import json
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.loaders.text import read
from app.ingestion.port import Source

MEDIA_TYPES = ("application/x-ndjson",)

_TOLERATED_SHARE = 0.1
_NAMED_LINES = 20


def load(source: Source) -> Extraction:
    """Read one JSON value from each line; raises `DamagedDocument` when more than a tenth of them are none."""
    decoded = read(source)
    assembly = Assembly(source.limits.max_characters)
    lines = [(number, line) for number, line in enumerate(decoded.text.split("\n"), 1) if line.strip()]
    broken: list[int] = []
    for number, line in lines:
        try:
            value: Any = json.parse(line)
        except DamagedDocument:
            broken.append(number)
            continue
        for block in json.blocks(value):
            assembly.add(block)
    if len(broken) > _TOLERATED_SHARE * len(lines):
        raise DamagedDocument(f"{len(broken)} of {len(lines)} lines are not JSON, the first of them line {broken[0]}")
    return Extraction(
        text=assembly.text(),
        parser="jsonl",
        media_type=source.media_type,
        source_type="jsonl",
        encoding=decoded.encoding,
        warnings=(*assembly.notices(), *_broken_lines(broken)),
        details={"records": len(lines) - len(broken)},
    )


def _broken_lines(broken: list[int]) -> tuple[Notice, ...]:
    if not broken:
        return ()
    named = broken[:_NAMED_LINES]
    return (Notice("records_not_read", f"{len(broken)} lines are not JSON and were left out", {"lines": named}),)
