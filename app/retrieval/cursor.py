"""The next page of a search, carried by the caller: the ranking itself, so that nothing that is added moves it.

Nothing in a cursor is trusted: it may name any chunk, and only those that the search may see are given.
"""

import base64
import binascii
import hashlib
import json
import struct
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.errors import FieldError, InvalidCursor
from app.indexes.port import Candidates
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun
from app.retrieval.scored import LegColumn, Scored

MOST_HITS = 2500
"""Hits that a search lists over all of its pages: a cursor of so many fits into a request, however many are fused.

It belongs to the form of a cursor, which bounds what a caller can send, so it is no setting; see `listed`.
"""

_VERSION = 2
_LEGS = ("dense", "keyword")
_SCORE_TYPES = ("rrf", "weighted", "relative", "dense", "bm25", "rerank")


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page begins: the place in the ranking of its first hit, and how many hits were given before."""

    place: int = 0
    given: int = 0


def listed(run: SearchRun, ranking: Ranking) -> Ranking:
    """Return the first hits of the ranking, as many as a cursor carries; tell where there are more."""
    count = len(ranking.candidates.keys)
    if count > MOST_HITS:
        detail = (
            f"{count} hits were found; the first {MOST_HITS} are listed and counted, since a cursor carries no more"
        )
        run.warn("list_cut", detail, limit=MOST_HITS, hits=count)
    return ranking.first(MOST_HITS)


def encode_cursor(run: SearchRun, collection_name: str, scored: Scored, start: PageStart) -> str:
    """Return the cursor of the page that begins there; `scored` holds at most `MOST_HITS`."""
    keys = scored.ranking.candidates.keys
    legs = [leg for leg in _LEGS if leg in scored.legs]
    said = [_VERSION, _digest(run, collection_name), scored.ranking.score_type, start.place, start.given]
    head = json.dumps([*said, len(keys), legs, scored.fused is not None]).encode()
    columns: list[NDArray[np.generic]] = [keys.astype("<i8"), scored.ranking.candidates.scores.astype("<f4")]
    for leg in legs:
        columns += [scored.legs[leg].scores.astype("<f4"), scored.legs[leg].ranks.astype("<u2")]
    if scored.fused is not None:
        columns.append(scored.fused.astype("<f4"))
    data = struct.pack("<H", len(head)) + head + b"".join(each.tobytes() for each in columns)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_cursor(run: SearchRun, collection_name: str) -> tuple[Scored, PageStart]:
    """Return the ranking that the plan's cursor carries, and where in it the page begins.

    Raises `InvalidCursor` for one that is none of ours or belongs to another search.
    """
    try:
        scored, start, digest = _unpacked(run.plan.cursor or "")
    except (ValueError, IndexError, TypeError, KeyError, RecursionError, struct.error, binascii.Error):
        raise _invalid("the cursor is none that a search gave") from None
    if digest != _digest(run, collection_name):
        raise _invalid("the cursor belongs to another search; send it with the body of the page before")
    return scored, start


def _invalid(detail: str) -> InvalidCursor:
    return InvalidCursor(detail, errors=[FieldError("/cursor", InvalidCursor.code, detail)])


def only_visible(run: SearchRun, scored: Scored) -> Scored:
    """Return the hits whose documents the search may see now; others are blanked out, so that places stay."""
    keys = scored.ranking.candidates.keys
    visible, documents = run.store.document_keys(keys.tolist())
    if run.scope.document_keys is not None:
        visible = visible[np.isin(documents, run.scope.document_keys)]
    candidates = Candidates(np.where(np.isin(keys, visible), keys, _NOBODY), scored.ranking.candidates.scores)
    return replace(scored, ranking=Ranking(candidates, scored.ranking.score_type))


_NOBODY = -1


def _unpacked(cursor: str) -> tuple[Scored, PageStart, str]:
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    (length,) = struct.unpack_from("<H", data)
    version, digest, score_type, place, given, count, legs, has_fused = json.loads(data[2 : 2 + length])
    if version != _VERSION or score_type not in _SCORE_TYPES or not set(legs) <= set(_LEGS):
        raise ValueError("another kind of cursor")
    if not all(isinstance(each, int) and 0 <= each <= MOST_HITS for each in (place, given, count)):
        raise ValueError("no counts")
    position = 2 + length
    columns: list[NDArray[np.generic]] = []
    for kind in ("<i8", "<f4", *("<f4", "<u2") * len(legs), *["<f4"] * bool(has_fused)):
        columns.append(np.frombuffer(data, kind, count, position))
        position += columns[-1].nbytes
    if position != len(data):
        raise ValueError("more than columns")
    keys, scores, *rest = columns
    fused = rest.pop().astype(np.float32) if has_fused else None
    fractions = [each.astype(np.float32) for each in (scores, *rest[::2])]
    if not all(np.isfinite(each).all() for each in fractions) or (fused is not None and np.isinf(fused).any()):
        raise ValueError("no scores")
    by_leg = {
        leg: LegColumn(rest[2 * place].astype(np.float32), rest[2 * place + 1].astype(np.uint16))
        for place, leg in enumerate(legs)
    }
    ranking = Ranking(Candidates(keys.astype(np.int64), scores.astype(np.float32)), score_type)
    return Scored(ranking, fused, by_leg), PageStart(place, given), digest


def _digest(run: SearchRun, collection_name: str) -> str:
    """Return what tells one search from another; how it came to its ranking and what a page shows may differ."""
    plan = run.plan
    asked = (collection_name, plan.query, plan.queries, plan.mode, plan.filter, plan.document_ids, run.restriction)
    shape = (plan.diversity, plan.max_per_document, plan.group_by)
    return hashlib.sha256(repr((asked, shape)).encode()).hexdigest()[:16]
