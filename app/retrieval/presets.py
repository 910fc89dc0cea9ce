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


def with_preset(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options and, of those that are not given, what their preset says."""
    return {**PRESETS.get(options.get("preset") or "", {}), **options}
