"""Read a passage in its context: what the search was asked to expand, as one exact piece of the document."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from app.answering.sentences import split_sentences
from app.domain import Citation, Passage, Span
from app.inference.token_counter import estimate_tokens
from app.stores.port import CollectionStore, FoundChunk

FindChunk: TypeAlias = Callable[[str, int], FoundChunk | None]
"""Return the chunk at a place of a document's text."""


def give_contexts(
    passages: Sequence[Passage], tokens: int, cost: Callable[[Passage], int]
) -> tuple[tuple[Passage, ...], bool]:
    """Return the passages with as much of their contexts as so many tokens more hold, best first.

    The second tells whether that is not all of it. A passage that stands in another's context is not given twice, so
    that a context may cost less than nothing. What is cut keeps whole sentences on both sides of the hit.
    """
    kept = dict(enumerate(passages))
    is_cut = False
    for place, passage in enumerate(passages):
        wide = _widened(passage)
        if place not in kept or wide is passage:
            continue
        others = {at: each for at, each in kept.items() if at != place and each.document_id == passage.document_id}
        inside = [at for at, each in others.items() if wide.start <= each.start and each.end <= wide.end]
        more = cost(wide) - cost(passage) - sum(cost(kept[at]) for at in inside)
        if more > tokens:
            is_cut, inside = True, []
            wide = _around(passage, wide, list(others.values()), tokens)
            more = cost(wide) - cost(passage)
        tokens -= more
        kept[place] = wide
        for at in inside:
            del kept[at]
    return tuple(kept.values()), is_cut


def _widened(passage: Passage) -> Passage:
    """Return the passage with its context as its text, as it is where it has none of its own."""
    context = passage.context
    if context is None or context.text is None:
        return passage
    return _within(passage, context.text, context.start)


def _around(passage: Passage, wide: Passage, others: Sequence[Passage], tokens: int) -> Passage:
    """Return the passage with the sentences on both sides that so many tokens hold, up to where others stand."""
    first = max([wide.start, *(each.end for each in others if each.end <= passage.start)])
    last = min([wide.end, *(each.start for each in others if each.start >= passage.end)])
    sentences = [Span(wide.start + each.start, wide.start + each.end) for each in split_sentences(wide.text)]
    before = [each.start for each in reversed(sentences) if first <= each.start < passage.start]
    after = [each.end for each in sentences if passage.end < each.end <= last]
    start, end = passage.start, passage.end
    while before or after:
        for side in (after, before):
            if not side:
                continue
            wanted = side.pop(0)
            tokens -= estimate_tokens(wide.text[min(wanted, end) - wide.start : max(wanted, start) - wide.start])
            if tokens < 0:
                return _cut(passage, wide, start, end)
            start, end = min(start, wanted), max(end, wanted)
    return _cut(passage, wide, start, end)


def _cut(passage: Passage, wide: Passage, start: int, end: int) -> Passage:
    if (start, end) == (passage.start, passage.end):
        return passage
    return _within(passage, wide.text[start - wide.start : end - wide.start], start)


def _within(passage: Passage, text: str, start: int) -> Passage:
    hit = Span(passage.start, passage.end)
    return replace(passage, text=text, start=start, end=start + len(text), context=None, hit=hit)


def chunk_at(store: CollectionStore, document_id: str, place: int) -> FoundChunk | None:
    """Return the last of the document's chunks that begins at the place or before it."""
    document = store.document(document_id)
    found: FoundChunk | None = None
    begin, end = 0, document.chunk_count if document else 0
    while begin < end:
        middle = (begin + end) // 2
        chunk = next(iter(store.chunks(document_id, limit=1, after=middle - 1)), None)
        if chunk is None or chunk.start > place:
            end = middle
        else:
            found, begin = chunk, middle + 1
    return found


def placed(citation: Citation, source: Passage, find_chunk: FindChunk | None) -> Citation:
    """Return the citation with chunk, page and headings of where its quote stands, not of the hit beside it."""
    hit = source.hit
    if hit is None or (hit.start <= citation.start and citation.end <= hit.end):
        return citation
    chunk = None if find_chunk is None else find_chunk(citation.document_id, citation.start)
    shown = "" if chunk is None else chunk.text[citation.start - chunk.start :]
    if chunk is None or not shown or not (shown.startswith(citation.quote) or citation.quote.startswith(shown)):
        # The document has changed since it was read.
        return replace(citation, page=None, heading_path=())
    return replace(citation, chunk_id=chunk.chunk_id, page=chunk.page_start, heading_path=chunk.heading_path)
