"""Count the values of metadata fields over the documents that a search found."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from app.domain import Notice
from app.filters import Condition, Operator
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun

Facets: TypeAlias = Mapping[str, tuple[tuple[Any, int], ...]]
"""By field its values, each with the number of documents that have it, the most first."""


def count_facets(run: SearchRun, ranking: Ranking) -> Facets:
    """Return the counts over the documents of every hit of the ranking, not only of those on this page.

    Each element of a list counts for its document. A field that no document of the collection has is a warning,
    unless the key's filter hides some. Those of one collection of several are whole: they are cut when they are added.
    """
    if not run.plan.facets:
        return {}
    with run.timer.stage("facets"):
        metadata = {chunk.document_id: chunk.metadata for chunk in run.read(ranking.key_list())}
        counts = {field: _counted(run, field, metadata.values()) for field in run.plan.facets}
    return counts if run.shared is not None else cut_facets(counts, run.plan.limits.facet_values, run.warnings)


def add_facets(parts: Iterable[Facets]) -> Facets:
    """Return the counts of several searches of different documents together."""
    added: dict[str, Counter[str]] = {}
    for facets in parts:
        for field, counts in facets.items():
            added.setdefault(field, Counter()).update({_key(value): count for value, count in counts})
    return {field: _in_order(counts) for field, counts in added.items()}


def cut_facets(facets: Facets, most: int, warnings: list[Notice]) -> Facets:
    """Return the values of the most documents, so many of each field; a field that has more is told in `warnings`."""
    for field, counts in facets.items():
        if len(counts) > most:
            detail = f"{field!r} has {len(counts)} values; the {most} of the most documents are told"
            extra = {"field": field, "limit": most, "values": len(counts)}
            warnings.append(Notice("facet_cut", f"{detail} (FOOTNOTE_MAX_FACET_VALUES)", extra))
    return {field: counts[:most] for field, counts in facets.items()}


def _counted(run: SearchRun, field: str, documents: Any) -> tuple[tuple[Any, int], ...]:
    counts = Counter(key for metadata in documents for key in set(_values(metadata.get(field))))
    if not counts and not run.plan.is_narrowed:
        run.warnings += run.store.scope(Condition(field, Operator.EXISTS, value=True), None).warnings
    return _in_order(counts)


def _in_order(counts: Counter[str]) -> tuple[tuple[Any, int], ...]:
    return tuple((json.loads(key), count) for key, count in counts.most_common())


def _values(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if each is not None:
            yield _key(each)


def _key(value: Any) -> str:
    """Return a value's JSON: lists cannot be hashed, and `1` is not `true`."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
