"""What a search may know of the collection's words: nothing of those that only hidden documents hold."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from app.retrieval.run import SearchRun

MOST_LOOKED_THROUGH = 10_000
"""Terms of one beginning among which those that may be known are looked for, those of the most chunks."""

_MOST_AT_ONCE = 512


def seen_frequencies(run: SearchRun, terms: Sequence[str], seen: AbstractSet[str] = frozenset()) -> list[int]:
    """Return in how many chunks each term occurs, 0 for one that none of the search's scope holds under a key's filter.

    Otherwise a guess, a trace or a fused score would tell which words the hidden documents have. Terms of which it is
    known that they are `seen` are not looked for again.
    """
    index = run.opened.index.keyword
    counts = index.document_frequencies(terms)
    if not run.plan.is_narrowed:
        return counts
    return [
        count if count and (term in seen or _is_seen(run, [term])) else 0
        for term, count in zip(terms, counts, strict=True)
    ]


def seen_with_prefix(run: SearchRun, prefix: str, limit: int) -> list[str]:
    """Return the terms that begin so and that the search may know of, those of the most chunks first."""
    index = run.opened.index.keyword
    if not run.plan.is_narrowed:
        return index.terms_with_prefix(prefix, limit)
    terms = index.terms_with_prefix(prefix, MOST_LOOKED_THROUGH)
    found: list[str] = []
    place, step = 0, 1
    while place < len(terms) and len(found) < limit:
        group = terms[place : place + step]
        if not _is_seen(run, group):
            # Past a crowd of hidden terms in steps that grow.
            place, step = place + step, min(2 * step, _MOST_AT_ONCE)
            continue
        first = _first_seen(run, group)
        found.append(group[first])
        place, step = place + first + 1, 1
    return found


def _first_seen(run: SearchRun, terms: Sequence[str]) -> int:
    """Return the place of the first term that is seen, of several of which one is."""
    begin, end = 0, len(terms)
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (begin, middle) if _is_seen(run, terms[begin:middle]) else (middle, end)
    return begin


def _is_seen(run: SearchRun, terms: Sequence[str]) -> bool:
    return len(run.opened.index.keyword.search(terms, 1, run.scope).keys) > 0
