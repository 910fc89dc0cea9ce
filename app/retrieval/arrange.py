"""From a ranking to hits as they are given: at most so many of one document, neighbours merged, documents grouped."""

from dataclasses import dataclass, field

from app.retrieval.plan import SearchPlan
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun
from app.stores.port import FoundChunk


@dataclass(slots=True)
class Hit:
    """One hit: the chunk that ranked best, where in its text it is, and what else of the document it stands for.

    `place` is that of the chunk in the ranking; `left_out` counts further hits that its group has no room for.
    """

    chunk: FoundChunk
    score: float
    place: int
    start: int
    end: int
    merged: list[FoundChunk] = field(default_factory=list)
    grouped: list[tuple[FoundChunk, float]] = field(default_factory=list)
    left_out: int = 0

    def takes_in(self, other: "Hit", most: int) -> bool:
        """Return whether the other overlaps or touches this one, but for white space, in at most so many characters."""
        if other.chunk.document_id != self.chunk.document_id or other.chunk.kind != self.chunk.kind:
            return False
        near = other.start <= self.end + _GAP and self.start <= other.end + _GAP
        return near and max(self.end, other.end) - min(self.start, other.start) <= most

    def take(self, other: "Hit") -> None:
        """Make one exact passage of both."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        self.merged += (other.chunk, *other.merged)

    def pages(self) -> tuple[int | None, int | None]:
        """Return the first and the last page of the place, `None` in a text without pages."""
        chunks = (self.chunk, *self.merged)
        starts = [chunk.page_start for chunk in chunks if chunk.page_start is not None]
        ends = [chunk.page_end for chunk in chunks if chunk.page_end is not None]
        return min(starts, default=None), max(ends, default=None)


_GAP = 2
"""Characters between two neighbours that touch: the blank line at which they were cut."""


def arrange(run: SearchRun, ranking: Ranking, place: int) -> tuple[list[Hit], int | None]:
    """Return the `top_k` hits from a place in the ranking on, and the place of the next page, `None` after the last.

    Chunks that are gone by now give their place to the next. Without an option that looks at the documents only as
    many chunks are read as are wanted.
    """
    if not _looks_at_documents(run.plan):
        return _first(run, ranking, place)
    hits = [hit for hit in _of_documents(run, ranking) if hit.place >= place]
    wanted = run.plan.top_k
    _warn_of_cut_groups(run, hits[:wanted])
    return hits[:wanted], hits[wanted].place if wanted < len(hits) else None


def _warn_of_cut_groups(run: SearchRun, page: list[Hit]) -> None:
    most = run.plan.limits.group_members
    longest = max((len(hit.grouped) + hit.left_out for hit in page), default=0)
    if longest > most:
        detail = f"a document has {longest} further hits; a group names the {most} best (FOOTNOTE_MAX_GROUP_MEMBERS)"
        run.warn("group_cut", detail, limit=most)


def _of_documents(run: SearchRun, ranking: Ranking) -> list[Hit]:
    plan = run.plan
    by_document: dict[str, list[Hit]] = {}
    places = {key: place for place, key in enumerate(ranking.key_list())}
    left_out = 0
    for chunk in run.read(ranking.key_list()):
        siblings = by_document.setdefault(chunk.document_id, [])
        hit = _hit(ranking, places[chunk.chunk_key], chunk)
        if not _joins(plan, hit, siblings):
            if plan.max_per_document is not None and len(siblings) >= plan.max_per_document:
                left_out += 1
                continue
            siblings.append(hit)
    hits = sorted((hit for siblings in by_document.values() for hit in siblings), key=lambda hit: hit.place)
    run.trace.add("arrange", given=len(hits), left_out_of_full_documents=left_out)
    return hits


def _hit(ranking: Ranking, place: int, chunk: FoundChunk) -> Hit:
    return Hit(chunk, float(ranking.candidates.scores[place]), place, chunk.start, chunk.end)


def _looks_at_documents(plan: SearchPlan) -> bool:
    merges = plan.diversity is not None and plan.diversity.merge
    return merges or plan.max_per_document is not None or plan.group_by is not None


def _first(run: SearchRun, ranking: Ranking, place: int) -> tuple[list[Hit], int | None]:
    found: list[Hit] = []
    keys = ranking.key_list()
    wanted = run.plan.top_k
    while len(found) < wanted and place < len(keys):
        batch = keys[place : place + wanted - len(found)]
        places = {key: each for each, key in enumerate(batch, place)}
        place += len(batch)
        found += [_hit(ranking, places[chunk.chunk_key], chunk) for chunk in run.read(batch)]
    return found, place if place < len(keys) else None


def _joins(plan: SearchPlan, found: Hit, siblings: list[Hit]) -> bool:
    """Let a hit of the same document that came before take this one in, if one does."""
    if plan.diversity is not None and plan.diversity.merge and _merges(found, siblings, plan.limits.merged_characters):
        return True
    if plan.group_by == "document" and siblings:
        if len(siblings[0].grouped) < plan.limits.group_members:
            siblings[0].grouped.append((found.chunk, found.score))
        else:
            siblings[0].left_out += 1
        return True
    return False


def _merges(found: Hit, siblings: list[Hit], most: int) -> bool:
    """Let the best of the hits that touch this one take it in, and then the others, which it joins to that one."""
    touching = [hit for hit in siblings if hit.takes_in(found, most)]
    if not touching:
        return False
    best, *others = touching
    best.take(found)
    for other in others:
        if best.takes_in(other, most):
            best.take(other)
            siblings.remove(other)
    return True
