"""What each stage of one search took in, gave out and decided, for `explain`; nothing is kept where it is not asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.indexes.port import Candidates

MOST_HITS = 100
"""Hits of one list that a trace names."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: what it decided, and the list that it gave, if any, as chunk keys with scores."""

    name: str
    facts: Mapping[str, Any]
    hits: tuple[tuple[int, float], ...] | None
    count: int | None


@dataclass(slots=True)
class Trace:
    """The stages of one search in their order; `wanted` says whether to keep them."""

    wanted: bool
    stages: list[Stage] = field(default_factory=list)

    def add(self, name: str, hits: Candidates | None = None, **facts: Any) -> None:
        """Keep what a stage did."""
        if not self.wanted:
            return
        named = None
        if hits is not None:
            named = tuple(zip(hits.keys[:MOST_HITS].tolist(), hits.scores[:MOST_HITS].tolist(), strict=True))
        self.stages.append(Stage(name, facts, named, None if hits is None else len(hits.keys)))

    def keys(self) -> list[int]:
        """Return the keys of every chunk that a stage names."""
        return list(dict.fromkeys(key for stage in self.stages for key, _ in stage.hits or ()))
