"""JSON: one line `path: value` for each value, an empty line between the objects of a list."""

import json
from collections.abc import Iterator
from typing import Any

from app.domain import Extraction
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.text import read
from app.ingestion.port import Source

MEDIA_TYPES = ("application/json",)


def load(source: Source) -> Extraction:
    """Read one JSON value; raises `DamagedDocument` that names the place where it breaks."""
    decoded = read(source)
    value = parse(decoded.text)
    assembly = Assembly(source.limits.max_characters)
    for block in blocks(value):
        assembly.add(block)
    title = value.get("title") if isinstance(value, dict) else None
    return Extraction(
        text=assembly.text(),
        parser="json",
        media_type=source.media_type,
        source_type="json",
        encoding=decoded.encoding,
        title=on_one_line(title) or None if isinstance(title, str) else None,
        warnings=assembly.notices(),
    )


def parse(text: str) -> Any:
    """Return a JSON value whose numbers are strings, digit for digit as they are written."""
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DamagedDocument(f"the JSON breaks at {place}: {error.msg}") from error
    except RecursionError as error:
        raise DamagedDocument("the JSON is nested too deeply to be read") from error


def blocks(value: Any) -> Iterator[str]:
    """Yield the lines of a value, those of each object in a list as a block of their own."""
    lines: list[str] = []
    for path, leaf, begins_object in _leaves(value):
        if begins_object:
            if lines:
                yield "\n".join(lines)
            lines = []
        elif path:
            lines.append(f"{path}: {leaf}")
        else:
            lines.append(leaf)
    if lines:
        yield "\n".join(lines)


def _leaves(value: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield (path, text, whether an object of a list begins here); empty strings and null say nothing."""
    stack: list[tuple[str, Any, bool]] = [("", value, False)]
    while stack:
        path, item, in_list = stack.pop()
        if isinstance(item, dict):
            if in_list:
                yield path, "", True
            members = [(f"{path}.{name}" if path else name, below, False) for name, below in item.items()]
            stack.extend(reversed(members))
        elif isinstance(item, list):
            stack.extend((f"{path}[{place}]", item[place], True) for place in reversed(range(len(item))))
        elif isinstance(item, bool):
            yield path, "true" if item else "false", False
        elif item:
            yield path, item, False
