"""JSON: one line `path: value` for each value, an empty line between the objects of a list."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from app.domain import Extraction
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.text import read
from app.ingestion.port import Source

MEDIA_TYPES = ("application/json",)

DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Numbers are strings, digit for digit as they are written."""


def load(source: Source) -> Extraction:
    """Read one JSON value; raises `DamagedDocument` that names the place where it breaks."""
    decoded = read(source)
    value = parse(decoded.text)
    assembly = Assembly(source.limits.max_characters)
    placed = [(assembly.add(block.text), block.begins_record) for block in blocks(value)]
    records = [start for start, begins_record in placed if begins_record]
    title = value.get("title") if isinstance(value, dict) else None
    return Extraction(
        text=assembly.text(),
        parser="json",
        media_type=source.media_type,
        source_type="json",
        encoding=decoded.encoding,
        title=on_one_line(title) or None if isinstance(title, str) else None,
        warnings=assembly.notices(),
        details={"records": len(records)} if records else {},
        records=tuple(records),
    )


def parse(text: str) -> Any:
    """Return a JSON value whose numbers are strings, digit for digit as they are written."""
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DamagedDocument(f"the JSON breaks at {place}: {error.msg}") from error
    except RecursionError as error:
        raise DamagedDocument("the JSON is nested too deeply to be read") from error


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together; a record is an object of a list that is in no other record."""

    text: str
    begins_record: bool


def blocks(value: Any) -> Iterator[Block]:
    """Yield the lines of a value, those of each object in a list as a block of their own."""
    lines: list[str] = []
    begins_record = False
    for leaf in _leaves(value):
        if leaf.begins is not None:
            if lines:
                yield Block("\n".join(lines), begins_record)
                lines, begins_record = [], False
            begins_record = begins_record or leaf.begins == "record"
        else:
            lines.append(f"{leaf.path}: {leaf.text}" if leaf.path else leaf.text)
    if lines:
        yield Block("\n".join(lines), begins_record)


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    text: str = ""
    begins: Literal["record", "object"] | None = None
    """Whether an object of a list begins here, and no value stands."""


@dataclass(frozen=True, slots=True)
class _Below:
    path: str
    item: Any
    in_list: bool = False
    in_record: bool = False


def _leaves(value: Any) -> Iterator[_Leaf]:
    """Yield every value and where objects of lists begin; empty strings and null say nothing."""
    stack = [_Below("", value)]
    while stack:
        place = stack.pop()
        item = place.item
        if isinstance(item, dict):
            if place.in_list:
                yield _Leaf(place.path, begins="object" if place.in_record else "record")
            in_record = place.in_record or place.in_list
            prefix = f"{place.path}." if place.path else ""
            stack.extend(reversed([_Below(prefix + name, below, False, in_record) for name, below in item.items()]))
        elif isinstance(item, list):
            stack.extend(
                _Below(f"{place.path}[{number}]", item[number], True, place.in_record)
                for number in reversed(range(len(item)))
            )
        elif isinstance(item, bool):
            yield _Leaf(place.path, "true" if item else "false")
        elif item:
            yield _Leaf(place.path, item)
