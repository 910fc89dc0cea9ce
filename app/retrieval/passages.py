"""Read the chunks that a search gives, with every score that put them there."""

from app.domain import Passage
from app.retrieval.legs import Legs
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun
from app.stores.port import FoundChunk

_OF_ONE_LEG = ("dense", "bm25")


def first_chunks(run: SearchRun, ranking: Ranking) -> list[FoundChunk]:
    """Return the first `top_k` chunks of the ranking that still exist."""
    found: list[FoundChunk] = []
    keys = ranking.keys()
    position = 0
    # A chunk that was deleted after its leg found it gives its place to the next one.
    while len(found) < run.plan.top_k and position < len(keys):
        batch = keys[position : position + run.plan.top_k - len(found)]
        position += len(batch)
        found += run.read(batch)
    return found


def make_passages(
    found: list[FoundChunk], collection_name: str, ranking: Ranking, fused: Ranking, legs: Legs
) -> tuple[Passage, ...]:
    """Return the chunks as they are answered; `fused` is the ranking before any step changed its order."""
    keys = [chunk.chunk_key for chunk in found]
    scores = _scores_of(keys, ranking)
    fused_scores = {} if fused.score_type in _OF_ONE_LEG else _scores_of(keys, fused)
    by_leg = legs.scores(keys)
    return tuple(
        Passage(
            rank=rank,
            chunk_id=chunk.chunk_id,
            document_id=chunk.document_id,
            collection=collection_name,
            title=chunk.title,
            text=chunk.text,
            start=chunk.start,
            end=chunk.end,
            page_start=chunk.page_start,
            page_end=chunk.page_end,
            heading_path=chunk.heading_path,
            score=scores[chunk.chunk_key],
            score_type=ranking.score_type,
            legs={leg: by_key[chunk.chunk_key] for leg, by_key in by_leg.items() if chunk.chunk_key in by_key},
            fused=fused_scores.get(chunk.chunk_key),
            metadata=chunk.metadata,
        )
        for rank, chunk in enumerate(found, start=1)
    )


def _scores_of(keys: list[int], ranking: Ranking) -> dict[int, float]:
    wanted = set(keys)
    pairs = zip(ranking.keys(), ranking.candidates.scores.tolist(), strict=True)
    return {key: score for key, score in pairs if key in wanted}
