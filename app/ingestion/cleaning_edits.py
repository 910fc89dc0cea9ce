"""Change a document's text and carry its pages and headings over to the same words."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from app.domain import Extraction


class Edit(NamedTuple):
    """Put `replacement` where `[start, end)` was."""

    start: int
    end: int
    replacement: str


def edited(extraction: Extraction, edits: Iterable[Edit]) -> Extraction:
    """Return the extraction with disjoint edits made; what begins or ends in an edit does so at its place."""
    ordered = sorted(edits)
    if not ordered:
        return extraction
    place = _Places(ordered)
    return replace(
        extraction,
        text=_apply(extraction.text, ordered),
        pages=tuple(replace(page, start=place.of(page.start), end=place.of(page.end)) for page in extraction.pages),
        records=tuple(map(place.of, extraction.records)),
        headings=tuple(replace(heading, start=place.of(heading.start)) for heading in extraction.headings),
    )


class _Places:
    """Where a place of the old text is in the new one; never decreasing."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        grown = (len(edit.replacement) - (edit.end - edit.start) for edit in edits)
        self._shifts = [0, *accumulate(grown)]

    def of(self, place: int) -> int:
        before = bisect_left(self._starts, place)
        if before and place < self._edits[before - 1].end:
            edit = self._edits[before - 1]
            return edit.start + self._shifts[before - 1] + min(place - edit.start, len(edit.replacement))
        return place + self._shifts[before]


def _apply(text: str, edits: Sequence[Edit]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, replacement in edits:
        parts += (text[position:start], replacement)
        position = end
    return "".join((*parts, text[position:]))
