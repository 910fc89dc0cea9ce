"""Make passages of hits: their text, every score that put them there, and what was asked for around them."""

from collections.abc import Sequence

from app.domain import GroupMember, Passage
from app.retrieval.arrange import Hit
from app.retrieval.expansion import expand
from app.retrieval.highlights import highlight
from app.retrieval.run import SearchRun
from app.retrieval.scored import Scored


def make_passages(
    run: SearchRun, collection_name: str, hits: Sequence[Hit], scored: Scored, first_rank: int
) -> tuple[Passage, ...]:
    """Return the hits as they are answered, ranked from `first_rank`."""
    texts = [_text(run, hit) for hit in hits]
    contexts = expand(run, hits, first_rank)
    highlights = highlight(run, [(text, hit.start) for text, hit in zip(texts, hits, strict=True)])
    return tuple(
        Passage(
            rank=rank,
            chunk_id=hit.chunk.chunk_id,
            document_id=hit.chunk.document_id,
            collection=collection_name,
            title=hit.chunk.title,
            text=text,
            start=hit.start,
            end=hit.end,
            page_start=hit.pages()[0],
            page_end=hit.pages()[1],
            heading_path=hit.chunk.heading_path,
            score=hit.score,
            score_type=scored.ranking.score_type,
            legs=scored.leg_scores(hit.place),
            fused=scored.fused_score(hit.place),
            metadata=hit.chunk.metadata,
            rerank=scored.rerank_score(hit.place),
            context=context,
            highlights=marks,
            merged=tuple(chunk.chunk_id for chunk in hit.merged),
            group=_group(run, hit),
        )
        for rank, (hit, text, context, marks) in enumerate(
            zip(hits, texts, contexts, highlights, strict=True), first_rank
        )
    )


def _text(run: SearchRun, hit: Hit) -> str:
    """Return the hit's text; one whose document has changed since it was read is given as it was, without others."""
    whole = run.text_around(hit.chunk, hit.start, hit.end) if hit.merged else hit.chunk.text
    if whole is None:
        hit.start, hit.end, hit.merged = hit.chunk.start, hit.chunk.end, []
    return hit.chunk.text if whole is None else whole


def _group(run: SearchRun, hit: Hit) -> tuple[GroupMember, ...] | None:
    if run.plan.group_by is None:
        return None
    return tuple(GroupMember(chunk.chunk_id, chunk.start, chunk.end, score) for chunk, score in hit.grouped)
