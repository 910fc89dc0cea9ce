"""Give what stands around each hit: neighbours, the parent, the section, the document; exact pieces of the text.

What two hits of a document would both give is given once, with the better one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    truncated: bool
    rank: int


def expand(run: SearchRun, hits: Sequence[Hit], first_rank: int) -> list[PassageContext | None]:
    """Return the context of each hit; `first_rank` is that of the first hit.

    It is `None` where none is asked for, and where the document has changed since the hit was read.
    """
    options = run.plan.expand
    if not options.is_wanted:
        return [None] * len(hits)
    with run.timer.stage("expand"):
        windows: list[_Window] = []
        mine = [
            _placed(windows, _window(run, hit, rank), options.max_characters)
            for rank, hit in enumerate(hits, first_rank)
        ]
        texts = {each.rank: run.text_around(each.chunk, each.start, each.end) for each in windows}
    run.trace.add("expand", windows=[[each.chunk.document_id, each.start, each.end] for each in windows])
    return [_context(each, texts[each.rank], rank) for rank, each in enumerate(mine, first_rank)]


def _context(window: _Window, text: str | None, rank: int) -> PassageContext | None:
    if text is None:
        return None
    is_own = window.rank == rank
    return PassageContext(
        window.start,
        window.end,
        text=text if is_own else None,
        same_as=None if is_own else window.rank,
        truncated=window.truncated,
    )


def _placed(windows: list[_Window], wanted: _Window, most: int) -> _Window:
    """Return the window that holds the wanted one: one before that it overlaps and may grow by it, or a new one."""
    for each in windows:
        start, end = min(each.start, wanted.start), max(each.end, wanted.end)
        is_of_same = each.chunk.document_id == wanted.chunk.document_id
        overlap = is_of_same and each.start <= wanted.end and wanted.start <= each.end
        if overlap and (end - start <= most or (start, end) == (each.start, each.end)):
            each.start, each.end = start, end
            each.truncated = each.truncated or wanted.truncated
            return each
    windows.append(wanted)
    return wanted


def _window(run: SearchRun, hit: Hit, rank: int) -> _Window:
    start, end = _wanted(run, hit)
    most = max(run.plan.expand.max_characters, hit.end - hit.start)
    if end - start <= most:
        return _Window(hit.chunk, start, end, truncated=False, rank=rank)
    # As much before the hit as after it, and what one side does not need goes to the other.
    spare = most - (hit.end - hit.start)
    before = min(hit.start - start, max(spare // 2, spare - (end - hit.end)))
    start = hit.start - before
    return _Window(hit.chunk, start, min(end, start + most), truncated=True, rank=rank)


def _wanted(run: SearchRun, hit: Hit) -> tuple[int, int]:
    """Return the widest place that is asked for; it always holds the hit."""
    options = run.plan.expand
    document_id = hit.chunk.document_id
    if options.document:
        document = run.store.document(document_id)
        return (0, document.characters) if document else (hit.start, hit.end)
    if options.section and hit.chunk.heading_path:
        return _span(hit, list(_section(run, hit.chunk)))
    if options.parent:
        parent = run.store.parents_of([hit.chunk.chunk_key]).get(hit.chunk.chunk_key)
        if parent is not None:
            return _span(hit, [parent])
    if options.neighbours:
        count = options.neighbours
        near = run.store.chunks(
            document_id, limit=2 * count + 1, after=hit.chunk.ordinal - count - 1, kind=hit.chunk.kind
        )
        return _span(hit, [chunk for chunk in near if abs(chunk.ordinal - hit.chunk.ordinal) <= count])
    return hit.start, hit.end


def _span(hit: Hit, chunks: Sequence[FoundChunk]) -> tuple[int, int]:
    return (
        min([hit.start, *(chunk.start for chunk in chunks)]),
        max([hit.end, *(chunk.end for chunk in chunks)]),
    )


def _section(run: SearchRun, chunk: FoundChunk) -> Iterator[FoundChunk]:
    """Yield the chunks around the hit under its heading, as far as the longest context can reach."""
    path = chunk.heading_path
    most = run.plan.expand.max_characters
    for after in (max(-1, chunk.ordinal - _PAGE - 1), chunk.ordinal):
        near = run.store.chunks(chunk.document_id, limit=_PAGE, after=after, kind=chunk.kind)
        ahead = after == chunk.ordinal
        for other in near if ahead else reversed([each for each in near if each.ordinal <= chunk.ordinal]):
            if other.heading_path[: len(path)] != path or abs(other.start - chunk.start) > most:
                break
            yield other
