"""Find the parts of a Markdown text that a cut would spoil."""

import re
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt

_KINDS: dict[str, Literal["code", "table"]] = {"fence": "code", "code_block": "code", "table_open": "table"}


@dataclass(frozen=True, slots=True)
class Block:
    """The place `[start, end)` of a code block or a table, whole lines of it."""

    kind: Literal["code", "table"]
    start: int
    end: int


def spoilable_blocks(text: str) -> list[Block]:
    """Return the code blocks and tables of canonical Markdown, in order and disjoint."""
    parser = MarkdownIt("commonmark", {"maxNesting": 30}).enable("table")
    # Inline text does not matter here and is most of the work.
    parser.core.ruler.enableOnly(["block"])
    lines = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    blocks: list[Block] = []
    for token in parser.parse(text):
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        first, last = token.map
        start, end = lines[first], lines[min(last, len(lines) - 1)]
        if start < end and (not blocks or start >= blocks[-1].end):
            blocks.append(Block(kind, start, end))
    return blocks
