"""The next page of a search, carried by the caller: the ranking itself, so that nothing that is added moves it.

Nothing in a cursor is trusted: it may name any chunk, and only those that the search may see are given.
"""

import base64
import binascii
import hashlib
import json
import struct
import zlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.errors import FieldError, InvalidCursor
from app.indexes.port import Candidates
from app.retrieval.plan import SearchPlan
from app.retrieval.ranking import Ranking
from app.retrieval.run import SearchRun
from app.retrieval.scored import LegColumn, Scored

_VERSION = 1
_MOST_BYTES = 1_000_000
_LEGS = ("dense", "keyword")
_SCORE_TYPES = ("rrf", "weighted", "relative", "dense", "bm25", "rerank")


def encode_cursor(plan: SearchPlan, scored: Scored, offset: int) -> str:
    """Return the cursor of the page that begins after `offset` hits."""
    keys = scored.ranking.candidates.keys
    legs = [leg for leg in _LEGS if leg in scored.legs]
    head = json.dumps([_VERSION, _digest(plan), scored.ranking.score_type, offset, len(keys), legs]).encode()
    columns: list[NDArray[np.generic]] = [keys.astype("<i8"), scored.ranking.candidates.scores.astype("<f4")]
    columns.append(scored.fused.astype("<f4"))
    for leg in legs:
        columns += [scored.legs[leg].scores.astype("<f4"), scored.legs[leg].ranks.astype("<u2")]
    packed = zlib.compress(struct.pack("<H", len(head)) + head + b"".join(each.tobytes() for each in columns))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(plan: SearchPlan) -> tuple[Scored, int]:
    """Return the ranking that the plan's cursor carries, and how many of its hits were given.

    Raises `InvalidCursor` for one that is none of ours or belongs to another search.
    """
    try:
        scored, offset, digest = _unpacked(plan.cursor or "")
    except (ValueError, IndexError, TypeError, KeyError, struct.error, zlib.error, binascii.Error):
        raise _invalid("the cursor is none that a search gave") from None
    if digest != _digest(plan):
        raise _invalid("the cursor belongs to another search; send it with the body of the page before")
    return scored, offset


def _invalid(detail: str) -> InvalidCursor:
    return InvalidCursor(detail, errors=[FieldError("/cursor", InvalidCursor.code, detail)])


def only_visible(run: SearchRun, scored: Scored) -> Scored:
    """Return the hits whose documents the search may see now; others are blanked out, so that places stay."""
    keys = scored.ranking.candidates.keys
    chunks = run.store.indexed_chunks(keys.tolist())
    documents = np.array([chunk.document_key for chunk in chunks], np.int64)
    inside = run.scope.document_keys
    allowed = np.ones(len(documents), bool) if inside is None else np.isin(documents, inside)
    visible = np.array([chunk.chunk_key for chunk in chunks], np.int64)[allowed]
    candidates = Candidates(np.where(np.isin(keys, visible), keys, _NOBODY), scored.ranking.candidates.scores)
    return replace(scored, ranking=Ranking(candidates, scored.ranking.score_type))


_NOBODY = -1


def _unpacked(cursor: str) -> tuple[Scored, int, str]:
    packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    unzip = zlib.decompressobj()
    data = unzip.decompress(packed, _MOST_BYTES)
    (length,) = struct.unpack_from("<H", data)
    version, digest, score_type, offset, count, legs = json.loads(data[2 : 2 + length])
    if version != _VERSION or score_type not in _SCORE_TYPES or not set(legs) <= set(_LEGS):
        raise ValueError("another kind of cursor")
    if not (isinstance(offset, int) and isinstance(count, int) and min(offset, count) >= 0):
        raise ValueError("no counts")
    position = 2 + length
    columns: list[NDArray[np.generic]] = []
    for kind in ("<i8", "<f4", "<f4", *("<f4", "<u2") * len(legs)):
        columns.append(np.frombuffer(data, kind, count, position))
        position += columns[-1].nbytes
    keys, scores, fused, *rest = columns
    if not np.isfinite(scores.astype(np.float32)).all():
        raise ValueError("no scores")
    by_leg = {
        leg: LegColumn(rest[2 * place].astype(np.float32), rest[2 * place + 1].astype(np.uint16))
        for place, leg in enumerate(legs)
    }
    ranking = Ranking(Candidates(keys.astype(np.int64), scores.astype(np.float32)), score_type)
    return Scored(ranking, fused.astype(np.float32), by_leg), offset, digest


def _digest(plan: SearchPlan) -> str:
    """Return what tells one search from another; how it came to its ranking and what a page shows may differ."""
    asked = (plan.query, plan.queries, plan.mode, plan.filter, plan.document_ids)
    shape = (plan.diversity, plan.max_per_document, plan.group_by)
    return hashlib.sha256(repr((asked, shape)).encode()).hexdigest()[:16]
