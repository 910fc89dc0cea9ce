"""Tell where the words of a query stand in a passage, as the analyzer understands both."""

from dataclasses import dataclass

from app.domain import Span
from app.indexes.analysis import Analyzer
from app.retrieval.query_terms import read_terms
from app.retrieval.run import SearchRun

MOST_HIGHLIGHTS = 100
"""Places that one passage tells."""


@dataclass(frozen=True, slots=True)
class Highlighter:
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
        return tuple(Span(start + first, start + last) for first, last in merged[:MOST_HIGHLIGHTS])


def highlighter(run: SearchRun) -> Highlighter | None:
    """Return what finds the words of the search's queries, with all that counted as them; `None` where unasked."""
    if not run.plan.highlight:
        return None
    asked = [run.terms.get(text) or read_terms(run, text) for text in (run.plan.query, *run.plan.queries)]
    forms = frozenset[str]().union(*(each.forms for each in asked))
    analyzers = run.opened.analyzers()
    # Beside the pair that it is part of, a character of a script without spaces is no word.
    parts = {
        character for form in forms if len(form) == 2 and len(analyzers[0].phrase(form)) == 2 for character in form
    }
    return Highlighter(analyzers, forms - parts)
