"""What a reranker may know of a collection's words, as plain values that outlive the collection's files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`weights` holds the inverse document frequency of each distinct term of the query in the collection.

    `terms` takes a text apart as the collection's index does; `located_terms` tells `(term, start, end)` too.
    """

    weights: Mapping[str, float]
    terms: Callable[[str], list[str]]
    located_terms: Callable[[str], list[tuple[str, int, int]]]
