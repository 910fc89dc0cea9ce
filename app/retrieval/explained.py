"""A trace as it is told: chunks by their public ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.retrieval.run import SearchRun


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    """A chunk of one stage's list; a chunk that is gone by now has no ids."""

    chunk_id: str | None
    document_id: str | None
    score: float


@dataclass(frozen=True, slots=True)
class ExplainedStage:
    """What one stage decided, the first hits of the list that it gave, and how long that list is.

    `collection` names the one that was searched where there are several.
    """

    stage: str
    facts: Mapping[str, Any]
    hits: tuple[ExplainedHit, ...] | None
    count: int | None
    collection: str | None = None


def explained(run: SearchRun) -> tuple[ExplainedStage, ...]:
    """Return the stages of the search in their order."""
    chunks = {chunk.chunk_key: chunk for chunk in run.read(run.trace.keys())}

    def told(key: int, score: float) -> ExplainedHit:
        chunk = chunks.get(key)
        return ExplainedHit(chunk.chunk_id if chunk else None, chunk.document_id if chunk else None, score)

    return tuple(
        ExplainedStage(
            stage.name,
            stage.facts,
            None if stage.hits is None else tuple(told(*hit) for hit in stage.hits),
            stage.count,
        )
        for stage in run.trace.stages
    )
