"""What a search looks for: the query as it came, or what a language model makes of it."""

from dataclasses import dataclass

from app.retrieval.run import SearchRun


@dataclass(frozen=True, slots=True)
class SearchQueries:
    """`texts` go to both legs, the first is the main one; `hypothetical` answers to the dense leg alone."""

    texts: tuple[str, ...]
    hypothetical: tuple[str, ...] = ()


def transform_queries(run: SearchRun) -> SearchQueries:
    """Return the texts to search for; what a model cannot do now is left out with a warning."""
    plan = run.plan
    return SearchQueries((plan.query, *plan.queries))
