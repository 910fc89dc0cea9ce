"""Find the lines that a document repeats at the edges of its pages: running heads, footers, page and line numbers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from app.domain import Extraction, Page
from app.ingestion.cleaning_edits import Edit
from app.ingestion.cleaning_signatures import LONGEST_LINE, Signature, letters_of, signatures_of

_DEPTH = 4
_SLIGHT = 3
"""A line of so few letters and digits (a line number, a mark of the press) does not count for the depth."""
_MOST_LINES = 60
_FEWEST_PAGES = 3
_LONGEST_STEP = 2
"""Left and right pages have heads of their own."""


@dataclass(frozen=True, slots=True)
class _Line:
    page: int
    start: int
    end: int
    is_blank: bool


@dataclass(frozen=True, slots=True)
class RepeatedLine:
    """A line that was removed from `pages` pages, as it stands on the first one that has it."""

    text: str
    pages: int


@dataclass(frozen=True, slots=True)
class Repetition:
    """What to take out, and what that is."""

    edits: tuple[Edit, ...] = ()
    lines: tuple[RepeatedLine, ...] = ()
    removed: int = 0


def repeated_lines(extraction: Extraction) -> Repetition:
    """Return what the pages repeat at their edges; one occurrence stays, save of bare numbers.

    What carries a heading stays, and where most pages would have no text left nothing is repeated but the text itself.
    """
    text = extraction.text
    pages = [page for page in extraction.pages if text[page.start : page.end].strip()]
    if len(pages) < 2:
        return Repetition()
    lines = [list(_lines(text, place, page)) for place, page in enumerate(pages)]
    kept = {heading.start for heading in extraction.headings if _begins(text, heading.start, heading.title)}
    signatures: dict[int, tuple[Signature, ...]] = {}
    taken: dict[int, str | None] = {}
    for inwards in (lines, [page[::-1] for page in lines]):
        bands = [list(_band(text, page)) for page in inwards]
        for line in chain.from_iterable(bands):
            if line.start not in signatures and not line.is_blank:
                signatures[line.start] = tuple(signatures_of(text[line.start : line.end], pages[line.page].number))
        found = _repeated(bands, signatures, len(pages))
        for band in bands:
            taken.update(_peel(band, signatures, found, kept))
    return _repetition(text, lines, taken)


def _lines(text: str, place: int, page: Page) -> Iterator[_Line]:
    start = page.start
    for line in text[page.start : page.end].split("\n"):
        yield _Line(place, start, start + len(line), not line.strip())
        start += len(line) + 1


def _begins(text: str, start: int, title: str) -> bool:
    return _letters(text[start : start + 2 * len(title)]).startswith(_letters(title))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _band(text: str, lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the outermost lines, which are given from the edge inwards."""
    depth = 0
    for line in lines[:_MOST_LINES]:
        if line.is_blank:
            yield line
            continue
        if line.end - line.start > _SLIGHT and sum(map(str.isalnum, text[line.start : line.end])) > _SLIGHT:
            depth += 1
        if depth > _DEPTH:
            return
        yield line


def _repeated(
    bands: Sequence[Sequence[_Line]], signatures: Mapping[int, tuple[Signature, ...]], pages: int
) -> set[Signature]:
    places: dict[Signature, list[int]] = defaultdict(list)
    for place, band in enumerate(bands):
        for signature in {each for line in band for each in signatures.get(line.start, ())}:
            places[signature].append(place)
    return {signature for signature, found in places.items() if _is_repeated(signature, found, pages)}


def _is_repeated(signature: Signature, places: Sequence[int], pages: int) -> bool:
    if len(places) < _FEWEST_PAGES:
        # Of two pages, one number says nothing.
        return len(places) == pages and (signature.offset is None or bool(signature.letters))
    if signature.offset is not None or 2 * len(places) >= pages:
        return True
    steps = [later - earlier <= _LONGEST_STEP for earlier, later in pairwise(places)]
    return not signature.letters.isdecimal() and any(all(pair) for pair in pairwise(steps))


def _peel(
    band: Sequence[_Line],
    signatures: Mapping[int, tuple[Signature, ...]],
    found: set[Signature],
    kept: set[int],
) -> Iterator[tuple[int, str | None]]:
    """Yield where repeated lines begin, from the edge to the first that is not, and what they repeat.

    That is `None` for blank lines and empty for bare numbers.
    """
    waiting: list[_Line] = []
    for line in band:
        if line.is_blank:
            waiting.append(line)
            continue
        repeated = next((each for each in signatures[line.start] if each in found), None)
        if repeated is None or line.start in kept:
            return
        yield from ((blank.start, None) for blank in waiting)
        yield line.start, "" if repeated.letters.isdecimal() else repeated.letters
        waiting = []


def _repetition(text: str, lines: Sequence[Sequence[_Line]], taken: Mapping[int, str | None]) -> Repetition:
    emptied = sum(all(line.is_blank or line.start in taken for line in page) for page in lines)
    if 2 * emptied > len(lines):
        return Repetition()
    groups: dict[str, list[_Line]] = defaultdict(list)
    for line in chain.from_iterable(lines):
        if words := taken.get(line.start):
            groups[words].append(line)
    elsewhere = _letters_elsewhere(text, lines, taken, groups)
    staying = {group[0].start for words, group in groups.items() if words not in elsewhere}
    removed = taken.keys() - staying
    edits = chain.from_iterable(_removals(page, removed) for page in lines)
    counts = ((group[0], sum(line.start in removed for line in group)) for group in groups.values())
    told = [RepeatedLine(text[line.start : line.end].strip(), count) for line, count in counts if count]
    return Repetition(tuple(edits), tuple(sorted(told, key=lambda line: -line.pages)), len(removed))


def _letters_elsewhere(
    text: str, lines: Sequence[Sequence[_Line]], taken: Mapping[int, str | None], wanted: Mapping[str, object]
) -> set[str]:
    """Return what lines that are not taken say, as far as it may be wanted."""
    lengths = set(map(len, wanted))
    others = (
        text[line.start : line.end]
        for line in chain.from_iterable(lines)
        if line.start not in taken and line.end - line.start < LONGEST_LINE
    )
    return {letters_of(line) for line in others if sum(map(str.isalnum, line)) in lengths}


def _removals(page: Sequence[_Line], removed: AbstractSet[int]) -> Iterator[Edit]:
    """Yield a page's removals, each with the line end that is not needed any more."""
    last = len(page) - 1
    for is_removed, run in groupby(range(len(page)), key=lambda place: page[place].start in removed):
        if not is_removed:
            continue
        places = list(run)
        first, final = page[places[0]], page[places[-1]]
        if places[-1] < last:
            yield Edit(first.start, page[places[-1] + 1].start, "")
        else:
            yield Edit(page[places[0] - 1].end if places[0] else first.start, final.end, "")
