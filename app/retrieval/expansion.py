"""Give what stands around each hit: neighbours, the parent, the section, the document; exact pieces of the text.

What two hits of a document would both give is given once, with the better one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.domain import PassageContext
from app.retrieval.arrange import Hit
from app.retrieval.run import SearchRun
from app.stores.port import FoundChunk

_PAGE = 100


@dataclass(slots=True)
class _Window:
    chunk: FoundChunk
    start: int
    end: int
    rank: int


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the context of one hit stands, and whether less of it than was asked for."""

    window: _Window
    truncated: bool


def expand(run: SearchRun, hits: Sequence[Hit], first_rank: int) -> list[PassageContext | None]:
    """Return the context of each hit; `first_rank` is that of the first hit.

    It is `None` where none is asked for, and where the document has changed since the hit was read.
    """
    options = run.plan.expand
    if not options.is_wanted:
        return [None] * len(hits)
    with run.timer.stage("expand"):
        windows: list[_Window] = []
        mine = [_placed(windows, run, hit, rank) for rank, hit in enumerate(hits, first_rank)]
        texts = {each.rank: run.text_around(each.chunk, each.start, each.end) for each in windows}
    run.trace.add("expand", windows=[[each.chunk.document_id, each.start, each.end] for each in windows])
    return [_context(each, texts[each.window.rank], rank) for rank, each in enumerate(mine, first_rank)]


def _context(placed: _Placed, text: str | None, rank: int) -> PassageContext | None:
    if text is None:
        return None
    window = placed.window
    is_own = window.rank == rank
    return PassageContext(
        window.start,
        window.end,
        text=text if is_own else None,
        same_as=None if is_own else window.rank,
        truncated=placed.truncated,
    )


def _placed(windows: list[_Window], run: SearchRun, hit: Hit, rank: int) -> _Placed:
    """Place a hit's context in a window before that it overlaps and that may grow by it, or in a new one."""
    start, end = _wanted(run, hit)
    spare = _spare(run, hit)
    truncated = (hit.start - start) + (end - hit.end) > spare
    if truncated:
        # As much before the hit as after it, and what one side does not need goes to the other.
        start = hit.start - min(hit.start - start, max(spare // 2, spare - (end - hit.end)))
        end = hit.end + spare - (hit.start - start)
    wanted = _Window(hit.chunk, start, end, rank)
    most = run.plan.expand.max_characters
    window = next((each for each in windows if _grows(each, wanted, most)), None)
    if window is None:
        windows.append(wanted)
    return _Placed(window or wanted, truncated)


def _grows(window: _Window, wanted: _Window, most: int) -> bool:
    """Let the window take the wanted one in, if they overlap in one document and are not too long together."""
    start, end = min(window.start, wanted.start), max(window.end, wanted.end)
    is_of_same = window.chunk.document_id == wanted.chunk.document_id
    overlap = is_of_same and window.start <= wanted.end and wanted.start <= window.end
    if overlap and (end - start <= most or (start, end) == (window.start, window.end)):
        window.start, window.end = start, end
        return True
    return False


def _spare(run: SearchRun, hit: Hit) -> int:
    """Return how many characters the context may have beside the hit, which it always holds whole."""
    return max(0, run.plan.expand.max_characters - (hit.end - hit.start))


def _wanted(run: SearchRun, hit: Hit) -> tuple[int, int]:
    """Return the widest place that is asked for, as far as it fits and a little further; it always holds the hit."""
    options = run.plan.expand
    document_id = hit.chunk.document_id
    if options.document:
        document = run.store.document(document_id)
        return (0, document.characters) if document else (hit.start, hit.end)
    if options.section and hit.chunk.heading_path:
        return _span(hit, [*_section(run, hit, _before), *_section(run, hit, _after)])
    if options.parent:
        parent = run.store.parents_of([hit.chunk.chunk_key]).get(hit.chunk.chunk_key)
        if parent is not None:
            return _span(hit, [parent])
    if options.neighbours:
        return _span(hit, _neighbours(run, hit, options.neighbours))
    return hit.start, hit.end


def _span(hit: Hit, chunks: Sequence[FoundChunk]) -> tuple[int, int]:
    return (
        min([hit.start, *(chunk.start for chunk in chunks)]),
        max([hit.end, *(chunk.end for chunk in chunks)]),
    )


def _neighbours(run: SearchRun, hit: Hit, count: int) -> list[FoundChunk]:
    """Return so many chunks on either side of the hit and of all that it took in, with these."""
    ordinals = [chunk.ordinal for chunk in (hit.chunk, *hit.merged)]
    first, last = min(ordinals) - count, max(ordinals) + count
    near = run.store.chunks(hit.chunk.document_id, limit=last - first + 1, after=max(first, 0) - 1, kind=hit.chunk.kind)
    return [chunk for chunk in near if chunk.ordinal <= last]


_Walk: TypeAlias = Callable[[SearchRun, FoundChunk], Iterator[FoundChunk]]


def _section(run: SearchRun, hit: Hit, walk: _Walk) -> Iterator[FoundChunk]:
    """Yield the chunks on one side of the hit under its heading, up to the first that reaches beyond the context."""
    path, spare = hit.chunk.heading_path, _spare(run, hit)
    for chunk in walk(run, hit.chunk):
        if chunk.heading_path[: len(path)] != path:
            return
        yield chunk
        if hit.start - chunk.start > spare or chunk.end - hit.end > spare:
            return


def _after(run: SearchRun, chunk: FoundChunk) -> Iterator[FoundChunk]:
    after = chunk.ordinal
    while near := run.store.chunks(chunk.document_id, limit=_PAGE, after=after, kind=chunk.kind):
        yield from near
        after = near[-1].ordinal


def _before(run: SearchRun, chunk: FoundChunk) -> Iterator[FoundChunk]:
    before = chunk.ordinal
    while before > 0:
        after = max(0, before - _PAGE) - 1
        near = run.store.chunks(chunk.document_id, limit=_PAGE, after=after, kind=chunk.kind)
        yield from reversed([each for each in near if each.ordinal < before])
        before = after + 1
