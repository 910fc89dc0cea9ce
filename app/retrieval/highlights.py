"""Tell where the words of a query stand in a passage, as the analyzer understands both."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain import Span
from app.indexes.analysis import Analyzer
from app.retrieval.query_terms import analyzers_of, read_terms
from app.retrieval.run import SearchRun


@dataclass(frozen=True, slots=True)
class _Highlighter:
    """Find the terms of one search in texts, in every language of the collection."""

    analyzers: tuple[Analyzer, ...]
    terms: frozenset[str]

    def spans(self, text: str, start: int) -> tuple[Span, ...]:
        """Return the places of the terms in a text that begins at `start` of its document, those that meet as one."""
        places = sorted(
            {
                (first, last)
                for analyzer in self.analyzers
                for term, first, last in analyzer.terms_with_offsets(text)
                if term in self.terms
            }
        )
        merged: list[tuple[int, int]] = []
        for first, last in places:
            if merged and first < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return tuple(Span(start + first, start + last) for first, last in merged)


def highlight(run: SearchRun, places: Sequence[tuple[str, int]]) -> list[tuple[Span, ...] | None]:
    """Return where in each text, which begins so far into its document, the queries' words stand; `None` if unasked."""
    if not run.plan.highlight:
        return [None] * len(places)
    words = _highlighter(run)
    found = [words.spans(text, start) for text, start in places]
    most = run.plan.limits.highlights
    if any(len(spans) > most for spans in found):
        detail = f"a passage holds the words of the query more than {most} times; it tells the first places"
        run.warn("highlights_cut", f"{detail} (FOOTNOTE_MAX_HIGHLIGHTS)", limit=most)
    return [spans[:most] for spans in found]


def _highlighter(run: SearchRun) -> _Highlighter:
    """Return what finds the words of the search's queries, with all that counted as them."""
    texts = (run.plan.query, *run.plan.queries)
    asked = [run.terms.get(text) or read_terms(run, text) for text in texts]
    forms = frozenset[str]().union(*(each.forms for each in asked))
    analyzers = tuple(dict.fromkeys(each for text in texts for each in analyzers_of(run.opened, text)))
    # Beside the pair that it is part of, a character of a script without spaces is no word.
    parts = {
        character for form in forms if len(form) == 2 and len(analyzers[0].phrase(form)) == 2 for character in form
    }
    return _Highlighter(analyzers, forms - parts)
