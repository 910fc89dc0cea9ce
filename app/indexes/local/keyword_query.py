"""Make tantivy's queries, as objects: no text of a caller is ever read as a query language."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tantivy import Occur, Query, Schema

from app.indexes.port import Phrase, Restriction, Wording


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of one index; `present` is the field that is 1 in every chunk."""

    schema: Schema
    present: str

    def holds(self, term: str) -> Query:
        """Return the query for chunks that hold the term."""
        return Query.term_query(self.schema, "text", term, index_option="freq")

    def any_of(self, field: str, values: Sequence[int]) -> Query:
        """Return the query for chunks whose number in the field is one of the values."""
        return _either([Query.term_query(self.schema, field, value) for value in values])

    def ranking(self, terms: Sequence[str], wording: Wording) -> Query | None:
        """Return the query that ranks by BM25, `None` without terms; a term that no chunk holds finds none."""
        if not terms:
            return None
        clauses = [(Occur.Should, self._boosted(term, count, wording)) for term, count in Counter(terms).items()]
        clauses += [(Occur.Should, self._phrase(phrase)) for phrase in wording.raised]
        query = Query.boolean_query(clauses)
        if not wording.restriction:
            return query
        return Query.boolean_query([(Occur.Must, query), *self._limits(wording.restriction)])

    def admitting(self, restriction: Restriction) -> Query:
        """Return the query for all chunks that the restriction admits."""
        everything = (Occur.Must, self.any_of(self.present, [1]))
        return Query.const_score_query(Query.boolean_query([everything, *self._limits(restriction)]), 0.0)

    def _boosted(self, term: str, count: int, wording: Wording) -> Query:
        query = self.holds(term)
        others = wording.alternatives.get(term)
        if others:
            query = Query.disjunction_max_query([query, *map(self._phrase, others)])
        weight = count * wording.weights.get(term, 1.0)
        return query if weight == 1 else Query.boost_query(query, weight)

    def _limits(self, restriction: Restriction) -> list[tuple[Occur, Query]]:
        required = [_either(list(map(self._phrase, phrases))) for phrases in restriction.required]
        return [
            *((Occur.Must, Query.const_score_query(query, 0.0)) for query in required),
            *((Occur.MustNot, self._phrase(phrase)) for phrase in restriction.excluded),
        ]

    def _phrase(self, phrase: Phrase) -> Query:
        if len(phrase) == 1:
            return self.holds(phrase[0])
        return Query.phrase_query(self.schema, "text", list(phrase))


def both(query: Query, other: Query) -> Query:
    """Return the query for chunks that both find, scored by the first."""
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, Query.const_score_query(other, 0.0))])


def _either(queries: Sequence[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])
