"""Put the lines that were found on a page in the order of reading: a recursive cut along the white between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

_SAME_LINE = 0.5
"""Lines whose heights overlap by this share of the lower one stand beside each other."""
_GUTTER = 1.0
"""White between two columns is at least this many line heights wide."""
_PARAGRAPH = 0.9
"""White between two paragraphs is at least this many line heights high."""
_LEAST_LINES_OF_A_COLUMN = 2
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Line:
    """A line's box in pixels, from the upper left corner of the image, and what was read in it."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    confidence: float

    @property
    def width(self) -> float:
        """Return the box's extent from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Return the box's extent from top to bottom."""
        return self.bottom - self.top


def in_reading_order(lines: Sequence[Line]) -> str:
    """Return the text: rows on lines of their own, an empty line between paragraphs, one column after another."""
    if not lines:
        return ""
    height = median(min(line.height, line.width) for line in lines) or 1.0
    return "\n\n".join(_paragraph(block, height) for block in _blocks(list(lines), height, 0))


def _blocks(lines: list[Line], height: float, depth: int) -> Iterator[list[Line]]:
    """Yield blocks without inner white: bands of the page from top to bottom, in each its columns from the left."""
    if depth < _DEEPEST:
        columns = _cut([(line.left, line.right, line) for line in lines], _GUTTER * height)
        if len(columns) > 1 and sum(len(_rows(column)) >= _LEAST_LINES_OF_A_COLUMN for column in columns) > 1:
            for column in columns:
                yield from _blocks(column, height, depth + 1)
            return
        bands = _cut([(line.top, line.bottom, line) for line in lines], _PARAGRAPH * height)
        if len(bands) > 1:
            for band in bands:
                yield from _blocks(band, height, depth + 1)
            return
    yield lines


def _cut(spans: list[tuple[float, float, Line]], white: float) -> list[list[Line]]:
    """Return the lines in groups between which there is that much white along one axis."""
    groups: list[list[Line]] = []
    reached = float("-inf")
    for begin, end, line in sorted(spans, key=lambda span: span[:2]):
        if not groups or begin - reached >= white:
            groups.append([])
        groups[-1].append(line)
        reached = max(reached, end)
    return groups


def _paragraph(lines: list[Line], height: float) -> str:
    if _is_vertical(lines):
        # Vertical writing runs from the right.
        return "\n".join(line.text for line in sorted(lines, key=lambda line: -line.left))
    return "\n".join(_row_text(row, height) for row in _rows(lines))


def _is_vertical(lines: list[Line]) -> bool:
    upright = sum(line.height > 2 * line.width for line in lines if len(line.text) > 1)
    return upright > 0.5 * len(lines)


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.top + line.bottom):
        last = rows[-1][-1] if rows else None
        if last is not None and _overlap(last, line) >= _SAME_LINE * min(last.height, line.height):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _overlap(one: Line, other: Line) -> float:
    return min(one.bottom, other.bottom) - max(one.top, other.top)


def _row_text(row: list[Line], height: float) -> str:
    """Join the pieces of a row; wide white between them separates the cells of a table."""
    text = row[0].text
    for before, line in pairwise(row):
        text += (" | " if line.left - before.right >= 2 * height else " ") + line.text
    return text
