"""What a search may know of the collection's words: nothing of those that only hidden documents hold."""

from collections.abc import Sequence

from app.retrieval.run import SearchRun


def seen_frequencies(run: SearchRun, terms: Sequence[str]) -> list[int]:
    """Return in how many chunks each term occurs, 0 for one that none of the search's scope holds under a key's filter.

    Otherwise a guess, a trace or a fused score would tell which words the hidden documents have.
    """
    index = run.opened.index.keyword
    counts = index.document_frequencies(terms)
    if not run.plan.is_narrowed:
        return counts
    return [
        count if count and len(index.search([term], 1, run.scope).keys) else 0
        for term, count in zip(terms, counts, strict=True)
    ]
