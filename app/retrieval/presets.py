"""Named ways to search, each a body of search options; a field that the caller gives beside one wins."""

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Both legs over the vector that every collection has, as a plain union.
    "economy": {"mode": "hybrid", "candidates": 50},
    # Parents narrow the search, then their children and keywords decide.
    "power": {
        "mode": "hybrid",
        "narrow_to_parents": 50,
        "fusion": {"method": "rrf", "k": 60, "weights": {"dense": 1, "keyword": 1}},
        "expand": {"parent": True},
    },
    # All of it: a hypothetical answer, the vectors of content and context, and a second look at the best.
    "ultimate": {
        "mode": "hybrid",
        "narrow_to_parents": 50,
        "fields": ["context", "content"],
        "transform": {"hyde": True},
        "rerank": {"model": "embedding", "candidates": 10},
        "expand": {"parent": True},
    },
}


def with_presets(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that count: a request's own, its preset's, the collection's own, the collection's preset's."""
    chosen: dict[str, Any] = {}
    for options in (defaults, given):
        chosen |= PRESETS.get(options.get("preset") or "", {})
        chosen |= options
    return chosen
