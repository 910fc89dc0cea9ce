"""Find what each heading rules."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter

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


def path_of(found: Sequence[Section], start: int, end: int) -> tuple[str, ...]:
    """Return the headings that rule all of `[start, end)`; `found` are the text's sections, in order."""
    first = max(0, bisect_right(found, start, key=attrgetter("start")) - 1)
    last = max(first, bisect_left(found, end, key=attrgetter("start")) - 1)
    paths = [section.heading_path for section in found[first : last + 1]]
    shared = takewhile(lambda titles: len(set(titles)) == 1, zip(*paths, strict=False))
    return tuple(titles[0] for titles in shared)


def _stands_alone(text: str, heading: Heading, end: int) -> bool:
    """Return whether nothing but its title, and perhaps a line drawn under it, is between a heading and `end`."""
    longest = heading.start + 2 * len(heading.title) + 100
    first_line, _, rest = text[heading.start : min(end, longest)].strip().partition("\n")
    return end <= longest and len(first_line) <= 2 * len(heading.title) + 20 and bool(_UNDERLINE.fullmatch(rest))
