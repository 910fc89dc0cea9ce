"""Markdown and MDX: the text stays as it is written, without its front matter, which becomes metadata.

A description in the front matter is the text's first paragraph too: it is prose, and often the best summary there is.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import islice, pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt

from app.domain import Extraction, Heading, Notice
from app.ingestion.loaders.canonical import canonical, check_length, on_one_line, removal_notices, require_text
from app.ingestion.loaders.text import read
from app.ingestion.port import Source

MEDIA_TYPES = ("text/markdown",)

_FRONT_MATTER = re.compile(
    r"(---|\+\+\+|;;;)[ \t]*(?:yaml|toml|json)?[ \t]*\n(.*?\n)??(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.S
)
_MAX_FRONT_MATTER = 65_536
_MAX_VALUES = 2_000
_DESCRIPTIONS = ("description", "summary", "abstract", "excerpt")

_YamlLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(source: Source) -> Extraction:
    """Read Markdown; raises `UndecodableText` and `EmptyDocument`."""
    decoded = read(source)
    whole, removed = canonical(decoded.text)
    metadata, begin, notices = _front_matter(whole)
    text = whole[begin:].lstrip("\n")
    described = next((metadata[name] for name in _DESCRIPTIONS if isinstance(metadata.get(name), str)), "").strip()
    if described:
        text = f"{described}\n\n{text}"
    require_text(text)
    check_length(len(text), source.limits.max_characters)
    found = tuple(headings(text))
    title = metadata.pop("title", None) or next((heading.title for heading in found if heading.level == 1), None)
    return Extraction(
        text=text,
        parser="markdown",
        media_type=source.media_type,
        source_type="markdown",
        encoding=decoded.encoding,
        title=on_one_line(str(title)) if title else None,
        metadata=metadata,
        headings=found,
        warnings=(*removal_notices(removed), *notices),
    )


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings of canonical Markdown that stand in no list and no quotation."""
    markdown = MarkdownIt("commonmark", {"maxNesting": 30})
    blocks_only = MarkdownIt("commonmark", {"maxNesting": 30})
    blocks_only.core.ruler.enableOnly(["block"])
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
    tokens = blocks_only.parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map and inline.content.strip():
            children = markdown.parseInline(inline.content)[0].children or []
            title = "".join(" " if "break" in child.type else child.content for child in children)
            yield Heading(int(token.tag[1]), on_one_line(title) or inline.content, line_starts[token.map[0]])


def _front_matter(text: str) -> tuple[dict[str, Any], int, tuple[Notice, ...]]:
    """Return the metadata, where the text begins after it, and a notice if it could not be read."""
    if text.startswith("{"):
        return _json_front_matter(text)
    found = _FRONT_MATTER.match(text, 0, _MAX_FRONT_MATTER)
    if not found:
        return {}, 0, ()
    fence, inside = found.group(1), found.group(2) or ""
    try:
        value = _parse_front_matter(fence, inside)
        metadata = dict(_flattened(value)) if isinstance(value, dict) else None
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        detail = f"the front matter could not be read and stays in the text: {reason}"
        return {}, 0, (Notice("front_matter_not_read", detail),)
    if metadata is None and inside.strip():
        return {}, 0, ()
    return metadata or {}, found.end(), ()


def _parse_front_matter(fence: str, inside: str) -> Any:
    if fence == "+++":
        return tomllib.loads(inside)
    if fence == ";;;" or inside.lstrip().startswith("{"):
        return json.loads(inside)
    return yaml.load(inside, Loader=_YamlLoader)  # noqa: S506 - a safe loader, in C where there is one


def _json_front_matter(text: str) -> tuple[dict[str, Any], int, tuple[Notice, ...]]:
    try:
        value, end = json.JSONDecoder().raw_decode(text[:_MAX_FRONT_MATTER])
        metadata = dict(_flattened(value))
    except (ValueError, RecursionError):
        return {}, 0, ()
    return (metadata, end, ()) if text[end : end + 1] == "\n" else ({}, 0, ())


def _flattened(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted names with a JSON scalar, or a list of them; raise `ValueError` where aliases multiply values."""
    gathered: dict[str, Any] = {}
    for name, leaf, in_list in islice(_leaves("", value, in_list=False), _MAX_VALUES + 1):
        if in_list:
            gathered.setdefault(name, []).append(_scalar(leaf))
        else:
            gathered[name] = _scalar(leaf)
    if sum(len(found) if isinstance(found, list) else 1 for found in gathered.values()) > _MAX_VALUES:
        raise ValueError(f"it holds more than {_MAX_VALUES} values")
    yield from gathered.items()


def _leaves(name: str, value: Any, *, in_list: bool) -> Iterator[tuple[str, Any, bool]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), below, in_list=in_list)
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(name, below, in_list=True)
    elif value is not None:
        yield name, value, in_list


def _scalar(value: Any) -> str | int | float | bool:
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo else value.isoformat() + "Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return canonical(str(value))[0]
