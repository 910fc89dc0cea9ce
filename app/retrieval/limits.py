"""How much one search looks up and one answer holds; each limit is a setting, and an answer that meets one says so."""

from dataclasses import dataclass

from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one search: queries, terms and synonyms of each that are looked up; characters of a merged passage, members of
    a group, values of a facet, highlights of a passage.
    """

    queries: int = 8
    query_terms: int = 1024
    query_synonyms: int = 50_000
    merged_characters: int = 6000
    group_members: int = 100
    facet_values: int = 100
    highlights: int = 100

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Return the limits that the service is set to."""
        return cls(
            queries=settings.max_queries,
            query_terms=settings.max_query_terms,
            query_synonyms=settings.max_query_synonyms,
            merged_characters=settings.max_merged_characters,
            group_members=settings.max_group_members,
            facet_values=settings.max_facet_values,
            highlights=settings.max_highlights,
        )


DEFAULT_LIMITS = Limits()
