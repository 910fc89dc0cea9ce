"""JSON lines: one block for each record, a line `path: value` for each of its values."""

import re
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
_SPACE = " \t\r\x1e"
"""What may stand around a value, a record separator (RFC 7464) too."""
_VALUE_START = re.compile(r"[^ \t\r\n\x1e]")


def load(source: Source) -> Extraction:
    """Read one JSON value from each line; raises `DamagedDocument` when more than a tenth of them are none.

    Values that are spread over several lines each are read one after the other.
    """
    decoded = read(source)
    assembly = Assembly(source.limits.max_characters)
    lines = [(number, line) for number, line in enumerate(decoded.text.split("\n"), 1) if line.strip(_SPACE)]
    values, broken = _values(lines)
    if len(broken) > _TOLERATED_SHARE * len(lines):
        values, broken = _spread_values(decoded.text, lines, broken), []
    records = [start for value in values if (start := _add(value, assembly)) is not None]
    return Extraction(
        text=assembly.text(),
        parser="jsonl",
        media_type=source.media_type,
        source_type="jsonl",
        encoding=decoded.encoding,
        warnings=(*assembly.notices(), *_broken_lines(broken)),
        details={"records": len(records)},
        records=tuple(records),
    )


def _values(lines: list[tuple[int, str]]) -> tuple[list[Any], list[int]]:
    """Return the values, and the numbers of lines that hold none."""
    values: list[Any] = []
    broken: list[int] = []
    for number, line in lines:
        try:
            values.append(json.parse(line.strip(_SPACE)))
        except DamagedDocument:
            broken.append(number)
    return values, broken


def _spread_values(text: str, lines: list[tuple[int, str]], broken: list[int]) -> list[Any]:
    """Return values that are written over several lines each; raises `DamagedDocument` where that does not fit."""
    values: list[Any] = []
    place = 0
    while (rest := _VALUE_START.search(text, place)) is not None:
        try:
            value, place = json.DECODER.raw_decode(text, rest.start())
        except (ValueError, RecursionError) as error:
            raise DamagedDocument(
                f"{len(broken)} of {len(lines)} lines are not JSON, the first of them line {broken[0]}"
            ) from error
        values.append(value)
    return values


def _add(value: Any, assembly: Assembly) -> int | None:
    """Write a record and return where it begins; one without a value is nothing."""
    starts = [assembly.add(block.text) for block in json.blocks(value)]
    return starts[0] if starts else None


def _broken_lines(broken: list[int]) -> tuple[Notice, ...]:
    if not broken:
        return ()
    detail = f"{len(broken)} lines are not JSON and were left out, the first of them line {broken[0]}"
    return (Notice("records_not_read", detail, {"lines": broken[:_NAMED_LINES]}),)
