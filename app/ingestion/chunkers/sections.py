"""Find what each heading rules."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.domain import Heading

_UNDERLINE = re.compile(r"[=\-\s]*")


@dataclass(frozen=True, slots=True)
class Section:
    """The place `[start, end)` that a heading rules, itself included, and the titles from the root to it."""

    heading_path: tuple[str, ...]
    start: int
    end: int


def sections(text: str, headings: Sequence[Heading]) -> Iterator[Section]:
    """Yield the text before the first heading, and what each heading rules; a heading alone joins what follows it."""
    ordered = sorted(headings, key=lambda heading: heading.start)
    path: list[Heading] = []
    start = 0
    ends = [*(heading.start for heading in ordered), len(text)]
    if ends[0] > 0:
        yield Section((), 0, ends[0])
        start = ends[0]
    for heading, end in zip(ordered, ends[1:], strict=True):
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        if end < len(text) and _stands_alone(text, heading, end):
            continue
        yield Section(tuple(each.title for each in path), start, end)
        start = end


def _stands_alone(text: str, heading: Heading, end: int) -> bool:
    """Return whether nothing but its title, and perhaps a line drawn under it, is between a heading and `end`."""
    longest = heading.start + 2 * len(heading.title) + 100
    first_line, _, rest = text[heading.start : min(end, longest)].strip().partition("\n")
    return end <= longest and len(first_line) <= 2 * len(heading.title) + 20 and bool(_UNDERLINE.fullmatch(rest))
